# METADATA
# title: The built-in policy
# description: >
#   One decision object for each request. A decision is allowed where its positive rule holds, whatever else is said; the
#   reasons are gathered only when it does not. So a fact that is missing allows nothing. The host checks the shape of
#   a request first and adds the one grant that answers it: `input.grant` is {known, owner, read, write, server_tools, admit_own}, and
#   `none` is the label of who may read nothing. `data.grants` is grants.toml; labels are compared by `data.labels`. What the sentence of
#   a reason names is taken from the request, unless the reason says it. The other files of this folder are its pages, one for each
#   action; a page uses nothing of another one.
package amem

# METADATA
# title: The decision
# entrypoint: true
default decision := {"allow": false, "hold": false, "reasons": [{"code": "unknown_action"}]}
