-- What changes with every commit of another connection. Caller: Storage.change_mark (the live page's
-- feed). No table is read.
PRAGMA data_version
