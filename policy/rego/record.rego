# METADATA
# title: What the record's own rules refuse
# description: >
#   Rules of verified policy entries add to `deny` in package amem.rules, each denial an object that names its policy.
#   The host asks for this list beside the decision, whichever policy is in force: a record's denial wins.
package amem.record

# METADATA
# entrypoint: true
denials := sort([denial | some denial in data.amem.rules.deny])
