-- entry_columns --
-- What makes a Row; the folder's path is joined on.
e.id, e.version, e.type, e.title, e.summary, e.domain, e.label, e.tier, e.status, e.author, e.written_at, e.session, e.task, e.left_by, e.owner,
e.review_by, e.sources, e.supersedes, e.superseded_by, e.basis, e.valid_from_at, e.valid_to_at, e.lineage, e.tokens, e.digest, d.path, e.name, e.seal

-- put_entry --
-- Insert an entry; a row number that is given is kept.
insert into entry (n, id, version, type, title, summary, domain, label, tier, mark, status, author, written_at, session, task, left_by, owner,
  review_by, sources, supersedes, superseded_by, basis, valid_from_at, valid_to_at, lineage, tokens, acl, folder, name, seal, digest, series, turn)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- put_words --
-- Index the words of an active entry.
insert into {words} (rowid, title, summary, body, grams, near, acl) values (?, ?, ?, ?, ?, ?, ?)

-- known --
-- What is known of an entry before it is put again.
select n, label, status, acl, digest, folder, name, series, turn from entry where id = ?

-- successor --
-- The newest entry of the same domain that says it supersedes this one and was not itself withdrawn.
select e.id from link l join entry e on e.id = l.new
where l.old = ? and e.domain = ? and e.mark in ('active', 'superseded') order by e.written_at desc, e.id desc limit 1

-- chain --
-- The end of the chain of successors, however long; none when it goes in a circle.
with recursive chain (id) as (select ? union select e.superseded_by from chain c join entry e on e.id = c.id where e.superseded_by is not null)
select c.id from chain c left join entry e on e.id = c.id where e.superseded_by is null

-- ranked --
-- The best matches of a domain for a reader who may read all of it, or whose filter is in the expression.
select rowid as n, bm25({words}, 5.0, 5.0, 1.0, 1.0, 0.3, 0.0) as s from {words} where {words} match ? order by s, rowid limit ?

-- ranked_wide --
-- The best matches of a domain for a reader who may read much of it: the seat is looked at before a score is computed.
select {words}.rowid as n, bm25({words}, 5.0, 5.0, 1.0, 1.0, 0.3, 0.0) as s from {words} cross join seat on seat.n = {words}.rowid
where {words} match ? and seat.acl in ({acls}) order by s, {words}.rowid limit ?

-- covers --
-- How the words of matches begin.
select n, series, length, said from cover where n in ({rows})

-- unmarked --
-- Entries that are superseded only because their successor says so.
select e.id, e.superseded_by, d.path, e.name from entry e join folder d on d.n = e.folder where e.mark = 'active' and e.status = 'superseded'

-- beside --
-- The active entries just before and just after a place in a source, read by the same readers, and what they say.
select e.id, c.text from (
  select * from (select n, id from entry where series = ?1 and turn < ?2 and status = 'active' and acl = ?3 order by turn desc, n desc limit 1)
  union all select * from (select n, id from entry where series = ?1 and turn > ?2 and status = 'active' and acl = ?3 order by turn, n limit 1)
) e join cover c on c.n = e.n

-- ordered --
-- Every active entry that has a place in a source.
select id, n from entry where series is not null and status = 'active' order by n

-- put_cover --
-- Keep how the words of an active entry begin.
insert into cover (n, series, length, said, text) values (?, ?, ?, ?, ?)

-- put_seat --
-- Keep who may read an active entry.
insert into seat (n, acl) values (?, ?)

-- put_link --
-- Keep that one entry supersedes another.
insert or ignore into link (old, new) values (?, ?)

-- hits --
-- What is shown of the entries on a page of hits, and what their files are compared by.
select e.n, e.id, e.type, e.title, e.summary, e.domain, e.label, e.tier, e.lineage, e.status, e.review_by, e.written_at, e.tokens, d.path, e.name,
  e.seal
from entry e join folder d on d.n = e.folder where e.n in ({rows})
