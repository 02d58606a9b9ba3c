-- Where the domains of a database are: one row a domain, one row a task's id. `space` keeps apart the roots that share a server.
create table if not exists public.ledger_domains(
    space text not null, domain text not null, schema text not null unique, layout integer not null, primary key(space, domain)
);
create table if not exists public.ledger_tasks(
    space text not null, id text not null, domain text not null, primary key(space, id)
)
