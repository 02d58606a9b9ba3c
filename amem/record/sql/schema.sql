-- drop --
-- Everything, so that another version of the schema can be built in its place.
drop table if exists words; drop table if exists entry; drop table if exists cover; drop table if exists seat; drop table if exists acl;
drop table if exists link; drop table if exists folder; drop table if exists problem; drop table if exists floor; drop table if exists series;

-- create --
-- One row an entry, with all of its front matter that is asked for; `status` and `superseded_by` also follow from the successor.
create table entry (
  n integer primary key, id text not null unique, version integer not null, type text not null, title text not null, summary text not null,
  domain text not null, label integer not null, tier integer not null, mark text not null, status text not null, author text not null,
  written_at text not null, session text, task text, left_by text, owner text, review_by text, sources text not null, supersedes text not null,
  superseded_by text, basis text, valid_from_at text, valid_to_at text, lineage integer, tokens integer not null, acl integer not null,
  folder integer not null, name text not null, seal text not null, digest text not null, series integer, turn integer
);
-- The table of words of each domain, by its number: see `words`.
create table words (n integer primary key, domain text not null unique);
-- How the words of active entries begin, to see which words of a question an entry has, and how long it is. The text of those that have a
-- place in a source, for it stands beside another's.
create table cover (n integer primary key, series integer, length integer not null, said text not null, text text);
-- Who may read each active entry: as small as can be, for it is looked at once for every match of a wide reader.
create table seat (n integer primary key, acl integer not null);
-- The combinations there are of domain, label and tier, and how many active entries have each.
create table acl (n integer primary key, domain text not null, label integer not null, tier integer not null, live integer not null default 0,
  unique (domain, label, tier));
-- Who supersedes whom, as the successors say.
create table link (old text not null, new text not null, primary key (old, new)) without rowid;
create index link_new on link (new);
-- The folders of the record as they were when last looked at.
create table folder (n integer primary key, path text not null unique, mtime_ns integer not null);
-- Files that are not served as they stand.
create table problem (path text primary key, kind text not null, why text not null) without rowid;
-- Sources whose parts are entries with an order: a transcript's turns, a file's sections.
create table series (n integer primary key, source text not null unique);
-- The labels of entries that were there once: one that comes back is not served under a lower one.
create table floor (id text primary key, label integer not null) without rowid;

-- words --
-- The words of a domain's active entries. A score depends on how many entries have a word, so each domain has a table of its own: how one
-- domain's hits are ordered tells nothing of another. `grams` are pairs of characters of scripts without spaces; `near` is what the
-- entries before and after it in its source say, where who may read them is the same; `acl` is who may read, and never scored.
create virtual table {words} using fts5(
  title, summary, body, grams, near, acl, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);

-- order --
-- Made after a bulk build, which would only slow down with them.
create index if not exists entry_place on entry (folder, name);
create index if not exists entry_written on entry (status, written_at, n);
create index if not exists entry_series on entry (series, turn) where series is not null;
create index if not exists entry_acl on entry (status, acl, type);
