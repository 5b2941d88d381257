"""The outside world of the shop: a payment gateway and a mail provider in one small server.

It stands for any remote service that honours idempotency keys, and it is as unreliable as the
real ones: now and then it does the work and answers too late, or with a 500. Its ledger says
what was really done, and is what the demo's audit reads.
"""
