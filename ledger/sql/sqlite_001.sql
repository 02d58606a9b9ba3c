-- 001: the events, their projection, and what it is looked up by.
create table event(
    seq integer primary key, task text not null, kind text not null, principal text not null, at_ms integer not null,
    fence integer not null, data text not null
);
-- Found by task; and a claim and a completion happen once, whatever the code above does.
create unique index event_once on event(task, fence, kind, (case when kind in ('claimed', 'completed') then 0 else seq end));
create table text(digest text primary key, text text not null) without rowid;

-- The projection. `seq` is that of the task's first event.
create table task(
    seq integer primary key, domain text not null, family text not null, open integer not null,
    id text not null unique, title text not null, status text not null, priority integer not null, rank real not null,
    requires text not null, origin text, creator text not null, parent text, chain text not null, twin text,
    open_needs integer not null, dependents integer not null, fence integer not null, holder text, session text,
    lease_ms integer not null, lease_ends_ms integer, handed_off integer not null, handoffs text not null, review text, reason text,
    created_ms integer not null, changed_ms integer not null, closed_ms integer, rest text not null
);
create index task_ready on task(domain, requires, rank desc, seq) where status = 'admitted' and open_needs = 0;
create index task_open on task(domain, rank desc, seq) where open = 1;
create index task_leased on task(domain, lease_ends_ms) where status = 'claimed';
create index task_parent on task(parent) where parent is not null;
create index task_twin on task(twin) where twin is not null;
create table need(on_task text not null, task text not null, primary key(on_task, task)) without rowid;
create index need_task on need(task, on_task);
create table requirement(domain text not null, requires text not null, primary key(domain, requires)) without rowid;

-- What the ledger's own time is: milliseconds since this boot plus `offset_ms`.
create table clock(boot text not null, offset_ms integer not null);
