"""The live page: what its server side does. Extra ``live`` (channels); without it the page polls.

| module | what it does |
| --- | --- |
| `protocol` | the messages of the WebSocket, as data |
| `reading` | a text that a client sent, checked against the protocol |
| `doors` | who may come in, and may stay |
| `feed` | one a process: asks the database while somebody looks, and tells all who do |
| `topics` | what there is to look at |
| `subscription` | what one viewer was told, and what is new since |
| `consumer` | one connection |
| `farewells` | closes the connections of a session that was logged out |
| `routing` | for the project's ``asgi.py`` |
| `page`, `manifest`, `urls` | the view that serves the built page, under any server |

Only `consumer` and `routing` need channels. Nothing here adds anything to what a job does: a worker
knows of no viewer.
"""
