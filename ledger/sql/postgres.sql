-- What PostgreSQL says in its own way. The three acts that every worker repeats are one statement each, its own transaction.

-- start --
-- The clock, and the transaction's own number, by which a commit whose answer was lost is found again.
select @now, pg_current_xact_id()::text

-- clock --
-- The clock.
select @now

-- claim --
-- Claim the first ready task whose requirements these capabilities hold, passing over those that others are claiming.
-- Answers whether a lease has ended (then nothing is claimed unless told so), whether a task was ready, and the task.
with tick as (
    select @now as ms
), late as (
    select exists(select 1 from @task t where t.status = 'claimed' and t.lease_ends_ms <= (select ms from tick)) as ended
), best as (
    select r.requires from @requirement r cross join lateral (
        select t.rank, t.seq from @task t where t.requires = r.requires and t.status = 'admitted' and t.open_needs = 0
        order by t.rank desc, t.seq limit 1
    ) top where :anything or string_to_array(r.requires, ' ') <@ :capabilities::text[]
    order by top.rank desc, top.seq limit 1
), picked as (
    select t.id from @task t where t.requires = (select requires from best) and t.status = 'admitted' and t.open_needs = 0
        and not (:unless_ended and (select ended from late))
    order by t.rank desc, t.seq limit 1 for update skip locked
), moved as (
    update @task t set status = 'claimed', fence = t.fence + 1, holder = :by, session = :session, lease_ms = :lease_ms,
        lease_ends_ms = greatest((select ms from tick), t.changed_ms) + :lease_ms, reason = null, changed_ms = greatest((select ms from tick), t.changed_ms)
    from picked where t.id = picked.id returning @columns
), noted as (
    insert into @event(task, kind, principal, at_ms, fence, data)
    select m.id, 'claimed', :by, m.changed_ms, m.fence, :data from moved m
)
select late.ended, exists(select 1 from best), m.* from late left join moved m on true

-- claim_any --
-- The same over every set of requirements at once, for when all the ready tasks of the best one are being claimed by others.
with tick as (
    select @now as ms
), picked as (
    select t.id from @task t where t.status = 'admitted' and t.open_needs = 0
        and (:anything or string_to_array(t.requires, ' ') <@ :capabilities::text[])
    order by t.rank desc, t.seq limit 1 for update skip locked
), moved as (
    update @task t set status = 'claimed', fence = t.fence + 1, holder = :by, session = :session, lease_ms = :lease_ms,
        lease_ends_ms = greatest((select ms from tick), t.changed_ms) + :lease_ms, reason = null, changed_ms = greatest((select ms from tick), t.changed_ms)
    from picked where t.id = picked.id returning @columns
), noted as (
    insert into @event(task, kind, principal, at_ms, fence, data)
    select m.id, 'claimed', :by, m.changed_ms, m.fence, :data from moved m
)
select m.* from moved m

-- complete --
-- Complete a task that nothing waits on, for the holder of its claim.
with tick as (
    select @now as ms
), moved as (
    update @task t set status = 'completed', open = 0, lease_ends_ms = null, closed_ms = greatest((select ms from tick), t.changed_ms),
        changed_ms = greatest((select ms from tick), t.changed_ms),
        handoffs = case when :handoff::text is null or position(' ' || :handoff || ' ' in ' ' || t.handoffs || ' ') > 0 then t.handoffs
            else ltrim(t.handoffs || ' ' || :handoff) end,
        handed_off = case when :handoff::text is null then t.handed_off else t.fence end
    where t.id = :id and t.status = 'claimed' and t.fence = :fence and t.lease_ends_ms > greatest((select ms from tick), t.changed_ms) and t.dependents = 0
        and (:session::text is null or t.session = :session) and (:handoff::text is not null or t.handed_off = t.fence)
    returning @columns
), noted as (
    insert into @event(task, kind, principal, at_ms, fence, data)
    select m.id, 'completed', :by, m.changed_ms, m.fence, :data from moved m
)
select m.* from moved m

-- beat --
-- Renew the lease of a claim.
with tick as (
    select @now as ms
), moved as (
    update @task t set lease_ms = :lease_ms, lease_ends_ms = greatest((select ms from tick), t.changed_ms) + :lease_ms,
        changed_ms = greatest((select ms from tick), t.changed_ms)
    where t.id = :id and t.status = 'claimed' and t.fence = :fence and t.lease_ends_ms > greatest((select ms from tick), t.changed_ms)
        and (:session::text is null or t.session = :session)
    returning @columns
), noted as (
    insert into @event(task, kind, principal, at_ms, fence, data)
    select m.id, 'heartbeat', :by, m.changed_ms, m.fence, :data from moved m
)
select m.* from moved m

-- drop_requirements --
-- Forget sets of requirements that no task has any more.
delete from @requirement where requires not in (select t.requires from @task t)
returning requires

-- insert --
-- A new task.
insert into @task(seq, family, open, id, title, status, priority, rank, requires, origin, creator, parent, chain, twin, open_needs,
    dependents, fence, holder, session, lease_ms, lease_ends_ms, handed_off, handoffs, review, reason, created_ms, changed_ms, closed_ms, rest)
values (:seq, :family, :open, :id, :title, :status, :priority, :rank, :requires, :origin, :creator, :parent, :chain, :twin, :open_needs,
    :dependents, :fence, :holder, :session, :lease_ms, :lease_ends_ms, :handed_off, :handoffs, :review, :reason, :created_ms, :changed_ms,
    :closed_ms, :rest)

-- add_requirement --
-- Note a set of requirements.
insert into @requirement(requires) values (:requires) on conflict do nothing

-- route --
-- Say which domain a task is in.
insert into public.ledger_tasks(space, id, domain) values (:space, :id, :domain) on conflict do nothing

-- all_events --
-- Every event of the domain, in order.
select e.kind, e.task, e.principal, e.at_ms, e.fence, e.data from @event e order by e.seq

-- events_after --
-- The events of the domain after one, in order.
select e.seq, e.kind, e.task, e.principal, e.at_ms, e.fence, e.data from @event e where e.seq > :seq order by e.seq

-- firsts --
-- The first event of each task.
select e.task, e.seq from @event e where e.kind = 'created'

-- all_needs --
-- Who waits on whom.
select n.task, n.on_task from @need n

-- alone --
-- Nobody writes tasks beside this transaction.
lock table @task, @event in share row exclusive mode
