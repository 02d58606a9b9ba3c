"""What a root's logs, meters and ledger come to: values that commands and pages show."""
