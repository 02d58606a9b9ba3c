-- What both databases do with the same words; see queries.py for the words that begin with @.

-- find --
-- One task.
select @columns from @task t where t.id = :id

-- lock --
-- Tasks by id, held until the transaction ends, in one order for everybody.
select @columns from @task t where t.id @any(ids) order by t.seq @lock

-- waiting --
-- The tasks that wait on one.
select n.task from @need n where n.on_task = :id

-- append --
-- One more event.
insert into @event(task, kind, principal, at_ms, fence, data) values (:task, :kind, :principal, :at_ms, :fence, :data) returning seq

-- add_need --
-- A task waits on another.
insert into @need(task, on_task) values (:task, :on_task)

-- drop_needs --
-- A task waits on nothing.
delete from @need where task = :task

-- keep_text --
-- Keep a long text beside the events.
insert into @text(digest, text) values (:digest, :text) on conflict do nothing

-- read_text --
-- A long text; no row when it was erased.
select x.text from @text x where x.digest = :digest

-- rewrite --
-- Change the keys of an event: only to erase words.
update @event set data = :data where seq = :seq

-- drop_text --
-- Erase a long text.
delete from @text where digest = :digest

-- all_texts --
-- Every long text.
select x.digest, x.text from @text x

-- quoting --
-- The tasks with an event whose keys hold this.
select distinct e.task from @event e where e.data like :pattern

-- all_promotions --
-- The promotions of a domain's entries, in order.
select p.seq, p.entry, p.version, p.tier, p.principal, p.at_ms, p.state, p.why, p.task from @promotion p
where substr(p.entry, 1, length(p.entry) - 13) = 'mem-' || substr(:domain, 5) order by p.seq

-- whys --
-- Why the entries of a domain were promoted.
select p.seq, p.entry, p.why from @promotion p
where p.why is not null and substr(p.entry, 1, length(p.entry) - 13) = 'mem-' || substr(:domain, 5) order by p.seq

-- drop_why --
-- Erase why an entry was promoted.
update @promotion set why = null where seq = :seq

-- ended --
-- Tasks whose lease is over.
select t.id from @task t where @mine and @late order by t.seq limit 200 @skip

-- twin --
-- The latest task of a chain with the same filing.
select t.id from @task t where t.twin = :twin and t.chain = :chain order by t.seq desc limit 1

-- subject --
-- The latest task of the domain about the same thing.
select t.id from @task t where t.twin = :twin and @mine order by t.seq desc limit 1

-- continuation --
-- The open continuation of a task.
select t.id from @task t where t.parent = :parent and t.origin = :origin and t.open = 1 order by t.seq desc limit 1

-- retried --
-- The latest task that was filed in place of another one.
select t.id from @task t where t.origin = :origin and @mine order by t.seq desc limit 1

-- tree --
-- A task and everything filed from it; of the first task of a chain, the chain.
with recursive below(id) as (
    select t.id from @task t where t.id = :id union select t.id from @task t join below b on t.parent = b.id
) select @columns from @task t where t.id in (select id from below) order by t.seq

-- upstream --
-- The open tasks that some tasks wait on, directly or not; what lies behind a closed one counts no more.
with recursive above(id) as (
    select n.on_task from @need n where n.task @any(ids)
    union select n.on_task from above a join @task t on t.id = a.id and t.open = 1 join @need n on n.task = a.id
) select t.id from @task t where t.id in (select id from above) and t.open = 1 order by t.seq

-- open_tasks --
-- Every open task of the domain.
select @columns from @task t where @mine and t.open = 1 order by t.seq

-- done --
-- How many tasks are completed, by the first word of their origin.
select t.family, count(*) from @task t where @mine and t.status = 'completed' group by t.family

-- all_tasks --
-- Every task of the domain.
select @columns from @task t where @mine order by t.seq

-- events_of --
-- What happened to a task.
select e.seq, e.kind, e.task, e.principal, e.at_ms, e.fence, e.data from @event e where e.task = :id order by e.seq

-- tally --
-- Tasks by family, status and reason of invalidation.
select t.family, case when @late then 'admitted' else t.status end, case when t.status = 'invalidated' then t.reason end, count(*)
from @task t
where @mine and t.created_ms >= :since group by 1, 2, 3

-- inflated --
-- Filings held back because they asked for more than their creator holds, by creator.
select t.creator, count(*) from @task t where @mine and t.review = 'human' and t.created_ms >= :since group by 1

-- carried --
-- The sets of requirements of tasks, by whether any such task waits and whether any was completed.
select t.requires, max(case when t.status in ('admitted', 'blocked', 'proposed') or @late then 1 else 0 end),
    max(case when t.status = 'completed' then 1 else 0 end)
from @task t where @mine and t.requires <> '' group by t.requires

-- forget --
-- Drop a task's row, to write it anew.
delete from @task where id = :id

-- promote --
-- Note a promotion, or the proposal of one.
insert into @promotion(entry, version, tier, principal, at_ms, state, why, task)
values (:entry, :version, :tier, :principal, :at_ms, :state, :why, :task) returning seq

-- promotions --
-- The promotions of an entry, in order.
select p.seq, p.entry, p.version, p.tier, p.principal, p.at_ms, p.state, p.why, p.task from @promotion p where p.entry = :entry order by p.seq

-- settle_promotion --
-- Say what became of a promotion.
update @promotion set state = :state where seq = :seq

-- filed --
-- The tasks that a session filed from then on, in order; `session` is a pattern over the event's keys.
select e.task from @event e where e.kind = 'created' and e.at_ms >= :at_ms and e.data like :session order by e.seq
