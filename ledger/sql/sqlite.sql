-- What SQLite says in its own way.

-- clock --
-- The boot that the clock was set in, and its offset.
select boot, offset_ms from clock

-- latest --
-- The time of the latest event.
select at_ms from event order by seq desc limit 1

-- any_claimed --
-- Whether anybody holds a lease.
select 1 from task where status = 'claimed' limit 1

-- before_claim --
-- The lease that ends next, over or not, and the sets of requirements that tasks of the domain ever had.
select (select min(t.lease_ends_ms) from task t where t.domain = :domain and t.status = 'claimed'),
    (select json_group_array(r.requires) from requirement r where r.domain = :domain)

-- note --
-- Append the event of a statement that changed one task.
insert into event(task, kind, principal, at_ms, fence, data) values (?, ?, ?, ?, ?, ?)

-- add_requirement --
-- Note a set of requirements.
insert into requirement(domain, requires) values (:domain, :requires) on conflict do nothing

-- best --
-- The ready task that comes first, among these sets of requirements.
select top.seq from json_each(:keys) k join task top on top.seq = (
    select t.seq from task t where t.domain = :domain and t.requires = k.value and t.status = 'admitted' and t.open_needs = 0
    order by t.rank desc, t.seq limit 1
) order by top.rank desc, top.seq limit 1

-- claim_first --
-- Claim the first ready task of one set of requirements.
update task set status = 'claimed', fence = fence + 1, holder = :by, session = :session, lease_ms = :lease_ms,
    lease_ends_ms = :now + :lease_ms, reason = null, changed_ms = :now
where seq = (select r.seq from task r where r.domain = :domain and r.requires = :key and r.status = 'admitted' and r.open_needs = 0
    order by r.rank desc, r.seq limit 1)
returning @bare

-- claim_row --
-- Claim a task.
update task set status = 'claimed', fence = fence + 1, holder = :by, session = :session, lease_ms = :lease_ms,
    lease_ends_ms = :now + :lease_ms, reason = null, changed_ms = :now where seq = :seq returning @bare

-- complete --
-- Complete a task that nothing waits on, for the holder of its claim.
update task set status = 'completed', open = 0, lease_ends_ms = null, closed_ms = :now, changed_ms = :now,
    handoffs = case when :handoff is null or instr(' ' || handoffs || ' ', ' ' || :handoff || ' ') then handoffs
        else ltrim(handoffs || ' ' || :handoff) end,
    handed_off = case when :handoff is null then handed_off else fence end
where id = :id and status = 'claimed' and fence = :fence and lease_ends_ms > :now and dependents = 0
    and (:session is null or session = :session) and (:handoff is not null or handed_off = fence)
returning @bare

-- beat --
-- Renew the lease of a claim.
update task set lease_ms = :lease_ms, lease_ends_ms = :now + :lease_ms, changed_ms = :now
where id = :id and status = 'claimed' and fence = :fence and lease_ends_ms > :now and (:session is null or session = :session)
returning @bare

-- drop_requirements --
-- Forget sets of requirements that no task has any more.
delete from requirement where domain = :domain and requires not in (select t.requires from task t where t.domain = :domain)
returning requires

-- insert --
-- A new task.
insert into task(seq, domain, family, open, id, title, status, priority, rank, requires, origin, creator, parent, chain, twin, open_needs,
    dependents, fence, holder, session, lease_ms, lease_ends_ms, handed_off, handoffs, review, reason, created_ms, changed_ms, closed_ms, rest)
values (:seq, :domain, :family, :open, :id, :title, :status, :priority, :rank, :requires, :origin, :creator, :parent, :chain, :twin, :open_needs,
    :dependents, :fence, :holder, :session, :lease_ms, :lease_ends_ms, :handed_off, :handoffs, :review, :reason, :created_ms, :changed_ms,
    :closed_ms, :rest)

-- all_events --
-- Every event of the domain, in order.
select e.kind, e.task, e.principal, e.at_ms, e.fence, e.data from event e
where substr(e.task, 1, length(e.task) - 9) = 'task-' || substr(:domain, 5) order by e.seq

-- events_after --
-- The events of the domain after one, in order.
select e.seq, e.kind, e.task, e.principal, e.at_ms, e.fence, e.data from event e
where e.seq > :seq and substr(e.task, 1, length(e.task) - 9) = 'task-' || substr(:domain, 5) order by e.seq

-- firsts --
-- The first event of each task.
select e.task, e.seq from event e where e.kind = 'created'

-- all_needs --
-- Who waits on whom.
select n.task, n.on_task from need n
