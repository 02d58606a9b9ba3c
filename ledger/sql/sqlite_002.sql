-- 002: who promoted which version of an entry to which tier, and why.
create table promotion(
    seq integer primary key, entry text not null, version integer not null, tier text not null, principal text not null,
    at_ms integer not null, state text not null, why text, task text
);
create index promotion_entry on promotion(entry, seq);
