# METADATA
# title: The built-in policy
# description: >
#   One decision object for each request. A decision is allowed where its positive rule holds, whatever else is said; the
#   reasons are gathered only when it does not. So a fact that is missing allows nothing. The host checks the shape of
#   `input` first and adds the one grant that answers the request: `input.grant` is {known, read, write, server_tools}, and `none` is the
#   label of who may read nothing. `data.grants` is grants.toml.
package amem

# METADATA
# title: The decision
# entrypoint: true
default decision := {"allow": false, "hold": false, "reasons": [{"code": "unknown_action"}]}

_rank := {"public": 0, "internal": 1, "restricted": 2}

#
# model_call: may what a session has seen go to a destination? Two ceilings bind: the route's and that of grants.toml.
#

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "model_call"
	_rank[input.label] <= _rank[input.ceiling]
	_rank[input.label] <= _rank[data.grants.destinations[input.destination].ceiling]
} else := {"allow": false, "hold": false, "reasons": sort(_call_refused)} if input.action == "model_call"

_destination_known if data.grants.destinations[input.destination]

_ceilings contains input.ceiling

_ceilings contains data.grants.destinations[input.destination].ceiling

_call_refused contains {"code": "unknown_destination", "destination": input.destination} if not _destination_known

_call_refused contains {"code": "no_ceiling", "destination": input.destination} if {
	_destination_known
	some ceiling in _ceilings
	ceiling == null
}

_call_refused contains {
	"code": "label_over_ceiling",
	"label": input.label,
	"ceiling": ceiling,
	"destination": input.destination,
} if {
	some ceiling in _ceilings
	_rank[input.label] > _rank[ceiling]
}

#
# server_tool: may a call have tools run at the provider, where the sandbox does not hold them? Only those that the grant names.
#

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "server_tool"
	count(input.tools) > 0
	every tool in input.tools {
		tool in input.grant.server_tools
	}
} else := {"allow": false, "hold": false, "reasons": sort(_tool_refused)} if input.action == "server_tool"

_tool_refused contains {
	"code": "server_tool",
	"tool": tool,
	"destination": input.destination,
	"principal": input.principal,
} if {
	some tool in input.tools
	not _granted_tools[tool]
}

_granted_tools := {tool | some tool in input.grant.server_tools}

#
# read: what may a session be served? The filter is pushed into every query.
#

decision := {"allow": true, "hold": false, "reasons": [], "filter": read_filter} if {
	input.action == "read"
	input.grant.known == true
	read_filter
} else := {"allow": false, "hold": false, "reasons": sort(_read_refused)} if input.action == "read"

# METADATA
# title: What an entry must meet to be served
read_filter := {"domains": [input.domain], "max_label": input.handling, "min_tier": "raw"} if {
	_rank[input.handling] <= _rank[input.grant.read]
} else := {"domains": [input.domain], "max_label": input.grant.read, "min_tier": "raw"} if {
	_rank[input.grant.read] < _rank[input.handling]
}

_read_refused contains {"code": "unknown_domain", "domain": input.domain} if input.grant.known == false

_read_refused contains {"code": "no_read_grant", "principal": input.principal, "domain": input.domain} if {
	input.grant.known == true
	input.grant.read == "none"
}

#
# write: does an entry go into the record, into the quarantine, or back?
#

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "write"
	_may_write
	_gates_open
} else := {"allow": false, "hold": true, "review": "human", "reasons": sort(_write_held)} if {
	input.action == "write"
	_may_write
} else := {"allow": false, "hold": false, "reasons": sort(_write_refused)} if input.action == "write"

_may_write if {
	input.grant.write == true
	_rank[input.classification] >= _rank[input.label]
	every entry in input.supersedes {
		entry.domain == input.domain
	}
}

_write_refused contains {"code": "unknown_domain", "domain": input.domain} if input.grant.known == false

_write_refused contains {"code": "no_write_grant", "principal": input.principal, "domain": input.domain} if {
	input.grant.known == true
	input.grant.write == false
}

_write_refused contains {
	"code": "label_below_session",
	"classification": input.classification,
	"label": input.label,
} if {
	_rank[input.classification] < _rank[input.label]
}

_write_refused contains {
	"code": "supersede_other_domain",
	"entry": entry.id,
	"other": entry.domain,
	"domain": input.domain,
} if {
	some entry in input.supersedes
	entry.domain != input.domain
}

# The gates: what does not pass them is held for the owner. The owner passes.

_gates_open if {
	input.principal == data.grants.owner
	input.principal == input.owner
}

_gates_open if {
	count(input.findings) == 0
	every entry in input.supersedes {
		entry.tier in {"raw", "curated"}
	}
	_within_limit
}

_within_limit if count(input.supersedes) == 0

_within_limit if input.superseded_so_far + count(input.supersedes) <= input.max_supersedes

_write_held contains {"code": "scan_findings", "findings": input.findings} if count(input.findings) > 0

_write_held contains {"code": "supersede_verified", "entry": entry.id} if {
	some entry in input.supersedes
	entry.tier == "verified"
}

_write_held contains {
	"code": "too_many_superseded",
	"so_far": input.superseded_so_far,
	"limit": input.max_supersedes,
} if {
	not _within_limit
}

#
# The owner's acts: to release a held write into the record as it was written, or drop it; to take an entry out of
# service, or everything that it reached; to erase one; to lower a label; to take a bundle in.
#

_owner_acts := {"release", "drop", "demote", "contain", "erase", "declassify", "import"}

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action in _owner_acts
	input.grant.known == true
	input.principal == data.grants.owner
	input.principal == input.owner
} else := {"allow": false, "hold": false, "reasons": sort(_act_refused)} if input.action in _owner_acts

_act_refused contains {"code": "unknown_domain", "domain": input.domain} if input.grant.known == false

_act_refused contains {"code": "owner_only", "act": input.action, "principal": input.principal} if {
	input.principal != data.grants.owner
}

#
# promote: who marks an entry curated, and who proposes it as verified? Curated is for anyone but its author.
#

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "promote"
	_may_promote
} else := {"allow": false, "hold": false, "reasons": sort(_promote_refused)} if input.action == "promote"

_may_promote if {
	input.grant.write == true
	input.why == true
	input.to == "curated"
	input.tier == "raw"
	input.author != input.principal
}

_may_promote if {
	input.grant.write == true
	input.why == true
	input.to == "verified"
	input.tier in {"raw", "curated"}
}

_promote_refused contains {"code": "unknown_domain", "domain": input.domain} if input.grant.known == false

_promote_refused contains {"code": "no_write_grant", "principal": input.principal, "domain": input.domain} if {
	input.grant.known == true
	input.grant.write == false
}

_promote_refused contains {"code": "no_why"} if input.why == false

_promote_refused contains {"code": "promote_own", "principal": input.principal, "entry": input.subject} if {
	input.to == "curated"
	input.author == input.principal
}

_promote_refused contains {"code": "tier_not_lower", "entry": input.subject, "tier": input.tier} if {
	_tier[input.tier] >= _tier[input.to]
}

_tier := {"raw": 0, "curated": 1, "verified": 2}

#
# approve, decline: a person judges a proposal, and nobody approves what he proposed. The approval is of one version.
#

_judgements := {"approve", "decline"}

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action in _judgements
	_may_judge
} else := {"allow": false, "hold": false, "reasons": sort(_judge_refused)} if input.action in _judgements

_may_judge if {
	input.action == "decline"
	input.grant.write == true
	input.kind == "human"
}

_may_judge if {
	input.action == "approve"
	input.grant.write == true
	input.kind == "human"
	input.proposer != input.principal
	input.version == input.proposed
}

_judge_refused contains {"code": "unknown_domain", "domain": input.domain} if input.grant.known == false

_judge_refused contains {"code": "no_write_grant", "principal": input.principal, "domain": input.domain} if {
	input.grant.known == true
	input.grant.write == false
}

_judge_refused contains {"code": "person_only", "principal": input.principal} if input.kind != "human"

_judge_refused contains {"code": "own_proposal", "principal": input.principal} if {
	input.action == "approve"
	input.proposer == input.principal
}

_judge_refused contains {
	"code": "version_changed",
	"entry": input.subject,
	"proposed": input.proposed,
	"version": input.version,
} if {
	input.action == "approve"
	input.version != input.proposed
}
