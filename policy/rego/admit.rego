# Admission: may a task be claimed as soon as it is filed? Filing is cheap and has no gate. A person admits what he files; the
# tasks of amem, and what a session files from the task it holds, are admitted where the domain's grant says `admit_own`. A task that
# asks for more than the held one is targeting, not work; what is irreversible is for a person, whoever files it.
package amem

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "admit"
	input.grant.known == true
	_may_admit
} else := {"allow": false, "hold": false, "review": "human", "reasons": sort(_admit_refused)} if input.action == "admit"

_may_admit if {
	input.filer == "human"
	input.grant.write == true
}

_may_admit if {
	input.filer == "system"
	input.grant.admit_own == true
	every asked in input.requires {
		asked != "irreversible"
	}
}

_may_admit if {
	input.filer == "agent"
	input.grant.admit_own == true
	is_array(input.held)
	every asked in input.requires {
		asked in input.held
		asked != "irreversible"
	}
}

_admit_refused contains {"code": "unknown_domain", "domain": input.domain} if input.grant.known == false

_admit_refused contains {"code": "no_write_grant", "principal": input.principal, "domain": input.domain} if {
	input.filer == "human"
	input.grant.known == true
	input.grant.write == false
}

_admit_refused contains {"code": "admits_by_hand", "domain": input.domain} if {
	input.filer in {"system", "agent"}
	input.grant.known == true
	input.grant.admit_own == false
}

_admit_refused contains {"code": "filed_by_tap", "principal": input.principal} if input.filer == "tap"

_admit_refused contains {"code": "holds_no_task", "principal": input.principal} if {
	input.filer == "agent"
	input.held == null
}

_admit_refused contains {"code": "requires_more", "requires": asked, "principal": input.principal} if {
	input.filer == "agent"
	is_array(input.held)
	some asked in input.requires
	not _held[asked]
}

_admit_refused contains {"code": "irreversible"} if {
	input.filer != "human"
	some asked in input.requires
	asked == "irreversible"
}

_held := {one | some one in input.held}
