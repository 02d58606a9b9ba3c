"""What differs per harness, as tables of values. Pure: values in, values out; the launcher does what they say."""
