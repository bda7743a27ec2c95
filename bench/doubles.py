"""Labelled pairs of cards for the search of doubles: what says the same, and what only looks like it. Written by hand.

Every set is a card, the same knowledge in other words, and a look-alike: a card of the same family about another
service, another number, another case. Reordered and extended cards are made from the first one. Sets with an even
number are for tuning, the others are only counted.
"""

from __future__ import annotations

from typing import NamedTuple


class Text(NamedTuple):
    """A card: its topic and its lines."""

    topic: str
    lines: tuple[str, ...]


class Set(NamedTuple):
    """A card, the same in other words, and one that only looks like it."""

    card: Text
    reworded: Text
    lookalike: Text


def _text(text: str) -> Text:
    topic, *lines = (line.strip() for line in text.strip().split("\n"))
    return Text(topic, tuple(lines))


def _sets(text: str) -> list[Set]:
    found = []
    for block in text.strip().split("\n====\n"):
        card, reworded, lookalike = (_text(part) for part in block.split("\n--\n"))
        found.append(Set(card, reworded, lookalike))
    return found


SETS = _sets(
    """
SQLite on network drives
SQLite file locks are not reliable on NFS mounts; two writers corrupted the file in March.
Keep the database on a local disk and copy it to the share at night.
The WAL mode makes it worse, because shared memory does not work over NFS at all.
--
Why the SQLite file must be local
NFS does not give SQLite reliable file locks, and in March two writers corrupted the database.
The file stays on a local disk; a copy goes to the share every night.
WAL mode is even worse over NFS, since shared memory does not work there.
--
DuckDB on network drives
DuckDB opens a file for one writer only; a second process gets an error at once.
Keep the analytics file on the fast disk and export Parquet to the share.
Read-only readers are fine over NFS as long as nobody writes.
====
Webhook signatures of the payment provider
Stripe signs webhooks with a timestamp; we reject anything older than five minutes.
The raw body must be verified before JSON parsing, otherwise the signature never matches.
Replays in staging need the CLI's own secret, not the one from the dashboard.
--
Verifying payment webhooks
Webhooks from Stripe carry a signed timestamp, and events older than five minutes are rejected.
Verify the raw body first: after JSON parsing the signature does not match any more.
For replays in staging use the secret of the CLI; the dashboard's one does not work.
--
Webhook signatures of the shipping provider
Shippo does not sign webhooks; we allow only its address range at the proxy.
The token in the query string is checked before JSON parsing.
Replays in staging need the sandbox account of the warehouse team.
====
Time zones in the reporting jobs
All reporting jobs run in Europe/Berlin, because finance closes the day at local midnight.
Timestamps in the warehouse are UTC; the conversion happens in the view, never in the job.
On the two switch days a year the daily report has 23 or 25 hours, and that is right.
--
Reports and daylight saving
Finance closes the day at local midnight, so reporting jobs run in Europe/Berlin.
The warehouse stores UTC timestamps, and only the view converts them, never a job.
It is correct that the daily report covers 23 or 25 hours on the two days of the clock change.
--
Time zones in the booking service
Bookings are stored with the offset of the venue, because a concert starts at local time.
Timestamps in the calendar export are UTC; the conversion happens in the exporter.
On the two switch days a year the reminder goes out an hour early, which is a known bug.
====
Pull request etiquette for the core team
Anna wants pull requests below 300 lines; larger ones are split before review.
Every behaviour change needs a test that fails without it.
Squash on merge, and write the message as a changelog entry.
--
How Anna likes pull requests
Pull requests above 300 lines have to be split before Anna reviews them.
A change in behaviour comes with a test that would fail without the change.
Merges are squashed, with a message that reads like a changelog entry.
--
Pull request etiquette for the data team
Bela wants one notebook a pull request, with all outputs cleared.
Every new table needs an owner and a retention in its description.
Merge commits are kept, because the lineage tool reads them.
====
Memory limit of the image resizer
The resizer is killed above 512 MB; one 60 megapixel photo needs about 480 MB.
Uploads above 40 megapixels are refused at the gateway for that reason.
Do not raise the limit: the node has no swap, and the neighbours suffer first.
--
Why large photos are refused
A photo of 60 megapixels takes roughly 480 MB in the resizer, which gets killed above 512 MB.
That is why the gateway refuses uploads above 40 megapixels.
Raising the limit is not an option, since the node has no swap and its neighbours would suffer first.
--
Memory limit of the video transcoder
The transcoder is killed above 4 GB; one hour of 4K video needs about 3 GB.
Uploads above two hours are refused at the gateway for that reason.
Do not raise the limit: the GPU node is shared with the training jobs.
====
Feature flags and their clean-up
A flag lives for at most one quarter; after that somebody removes it or explains it in the channel.
Flags are read once a request, so a change takes effect with the next one.
Never nest flags: the matrix of states was never tested.
--
Rules for feature flags
After a quarter a flag is removed, or somebody explains in the channel why not.
A changed flag takes effect with the next request, because flags are read once for each request.
Flags must not be nested, as nobody ever tested the matrix of their states.
--
Feature flags in the mobile app
Flags are fetched at start and cached for a day, so a change is seen late.
A flag for an old release stays until that release has fewer than one percent of the users.
Never gate the login: an app that cannot fetch flags must still get in.
====
Backups of the customer database
Full backup on Sunday, increments every hour; both go to the bucket in another account.
A restore is rehearsed on the first Monday of a month, and the log of it is kept.
The encryption key is in the safe, because a key in the vault would be lost with it.
--
Customer database: backup and restore
Increments are taken hourly and a full backup each Sunday, all into a bucket that belongs to another account.
On the first Monday of each month a restore is rehearsed; we keep its log.
The key for the encryption lies in the safe: in the vault it would get lost together with the vault.
--
Backups of the search cluster
There is no backup of the search cluster; it is rebuilt from the customer database in six hours.
A rebuild is rehearsed before each major upgrade.
The snapshot repository that older notes mention was deleted on purpose.
====
Rate limits of the geocoder
The geocoder allows 50 requests a second for the whole account, not for each key.
Batch jobs use the night window, when the shop needs fewer than 10 a second.
An answer 429 without a header means the daily quota, and waiting does not help.
--
Geocoding quotas
For the entire account the geocoder allows 50 requests a second; more keys do not change that.
The shop needs less than 10 a second at night, so batch jobs use that window.
If a 429 comes without a header, the daily quota is used up and waiting does not help.
--
Rate limits of the mail provider
The mail provider allows 14 messages a second for each sending domain.
Newsletters use their own domain, so that receipts are never delayed.
An answer 421 means that the address is blocked, and waiting does not help.
====
Generated files in the client repository
Everything below gen is written by the schema compiler; edits there are lost with the next build.
The compiler's version is pinned in the lock file, since every version orders fields differently.
Commit generated files together with the schema, never alone.
--
Do not edit what the schema compiler writes
The folder gen belongs to the schema compiler, and whatever is edited there is lost by the next build.
Each version orders fields in another way, so the compiler is pinned in the lock file.
Generated files are committed with their schema and not on their own.
--
Generated files in the design repository
Everything below tokens is exported from Figma; edits there are lost with the next export.
The plugin's version is not pinned, because Figma updates it by itself.
Review the export for renamed colours, since the app fails to build without them.
====
Login of service accounts
Service accounts sign in with workload identity; there are no long-lived keys any more.
A token lives for an hour, and the client library renews it five minutes before.
The old key of the billing job was revoked after the audit and must not come back.
--
No more keys for service accounts
Since workload identity was introduced, service accounts sign in with it, and long-lived keys are gone.
Tokens live one hour; five minutes before the end the client library renews them.
After the audit the billing job's old key was revoked. It must not come back.
--
Login of contractors
Contractors sign in with a guest account that ends with their contract.
A session lives for eight hours, and a second factor is asked for every day.
The shared account of the agency was closed after the audit and must not come back.
====
Flaky tests of the checkout
The checkout suite fails about once in fifty runs because the fake clock and the real one are mixed.
Rerun it once; if it fails twice, it is a real failure.
Do not raise the time-outs: that only hid the cause for a year.
--
When the checkout suite fails
Mixing the fake clock with the real one lets the checkout suite fail roughly once in fifty runs.
One rerun is fine, and a second failure is a real one.
Higher time-outs hid the cause for a year, so leave them as they are.
--
Flaky tests of the catalogue
The catalogue suite fails when two workers import at a time, about once a day.
Do not rerun it: a failure there has always been a real race.
The lock around the import is only taken in production.
====
Choosing Postgres for the queue
We use Postgres with SKIP LOCKED as the job queue instead of a broker: one thing less to operate.
It carries 2,000 jobs a second on the present machine; the need is 150.
The decision is to be looked at again when a job has to leave the region.
--
Why there is no message broker
Jobs are queued in Postgres with SKIP LOCKED, so that there is no broker to operate.
The machine does 2,000 jobs a second, while 150 are needed.
Should jobs ever have to leave the region, the decision is looked at again.
--
Choosing Redis for the sessions
We use Redis for sessions instead of Postgres: a lost session costs one login.
It carries 40,000 reads a second on the present machine; the need is 6,000.
The decision is to be looked at again when sessions hold carts.
====
Accessibility of the order form
The order form has to work with a keyboard alone; the audit of the agency tests exactly that.
Errors are announced by the live region, not by colour.
The date picker was replaced by three plain fields, because no library passed.
--
Keyboard and screen readers in the order form
The agency's audit tests that the order form works by keyboard alone.
Colour is not enough for errors; the live region announces them.
No date picker passed, so three plain fields took its place.
--
Accessibility of the account page
The account page has to work at 400 percent zoom; the audit of the agency tests exactly that.
Tables become lists on narrow screens, with their headings repeated.
The avatar cropper is exempt, because there is another way to upload a picture.
====
Deploy order of the backend
Migrations go out first, alone, and at least one release before the code that needs them.
Workers are drained before the web nodes are replaced, or jobs run twice.
The canary gets five percent of the traffic for twenty minutes.
--
How a backend release goes out
At least one release before the code that needs them, migrations are deployed on their own.
Drain the workers first and replace web nodes then; otherwise jobs run twice.
For twenty minutes the canary takes five percent of the traffic.
--
Deploy order of the mobile backend
The API goes out first, because old apps stay in use for a year.
Push workers are restarted at night, or users get messages twice.
There is no canary; the staged rollout of the store takes its place.
====
Currency rounding
Amounts are kept in cents as integers, and rounding happens once, on the invoice line.
Half a cent goes to the even neighbour, because the auditor compares with the bank's file.
The tax is computed from the rounded line and not from the sum.
--
Where amounts are rounded
We keep amounts as integer cents and round a single time, namely on the line of the invoice.
Banker's rounding is used, half a cent to the even neighbour, as the auditor compares with the file of the bank.
Tax comes from the rounded line, never from the sum.
--
Weight rounding
Weights are kept in grams as integers, and rounding happens on the label.
Half a gram goes up, because the carrier bills the next step anyway.
The surcharge is computed from the sum and not from the single parcel.
====
Log levels on the edge nodes
Edge nodes log at warning; info costs 30 GB a day and nobody reads it.
For a search of a fault, one node can be switched to debug for an hour; it goes back by itself.
Never log the query string: it holds the e-mail address in the unsubscribe link.
--
What edge nodes write to their logs
Warning is the level on edge nodes, because info would cost 30 GB a day that nobody reads.
A single node may be put to debug for an hour to look for a fault, and returns on its own.
The unsubscribe link has the e-mail address in its query string, so query strings are never logged.
--
Log levels on the build nodes
Build nodes log at debug; a failed build cannot be repeated with more detail.
Logs are kept for 14 days and then deleted without a copy.
Never print the environment: it holds the tokens of the registry.
====
Onboarding of a new carrier
A carrier needs a test account, a label template and a cut-off time before it can be switched on.
The first hundred parcels are checked by hand in the warehouse in Leipzig.
Contracts are with Marta; nobody else may accept a price list.
--
Switching on another carrier
Before a carrier is switched on, there must be a test account, a template for labels and a cut-off time.
In the Leipzig warehouse somebody checks the first hundred parcels by hand.
Only Marta may accept price lists, as contracts are hers.
--
Onboarding of a new supplier
A supplier needs a tax number, a price list and a contact before it can be switched on.
The first three deliveries are counted by hand in the warehouse in Porto.
Contracts are with Nuno; nobody else may accept a delay.
====
Search synonyms
Synonyms are kept in one file that the shop team edits; a reload takes effect within a minute.
Only one direction is expanded, from the word that people type to the one in the catalogue.
Brand names are never synonyms, because two brands sued over it.
--
How the shop's synonyms work
The shop team edits one file of synonyms, and within a minute of a reload they take effect.
Expansion goes in a single direction: from what people type to the catalogue's word.
Two brands went to court over it, so brand names are not allowed as synonyms.
--
Search filters
Filters are kept in the catalogue service; a change takes effect after the next full index.
Only facets with more than one value are shown, the longest list first.
Price is never a facet, because members see other prices.
====
Certificates of the partner interface
The partner interface uses client certificates from our own authority; they run for a year.
Thirty days before the end a ticket is made for the partner manager, not for operations.
Revocation is by a list that the gateway loads every ten minutes.
--
Client certificates for partners
Partners authenticate with client certificates that our own authority issues for one year.
The partner manager, and not operations, gets a ticket thirty days before one ends.
A list that the gateway loads every ten minutes takes care of revocation.
--
Certificates of the public site
The public site uses certificates from Let's Encrypt; they run for ninety days.
Renewal is automatic, and a failed one wakes operations.
There is no revocation; a leaked key means a new certificate within the hour.
====
Local development without the VPN
Everything needed for the shop runs in containers; the VPN is only for the payment sandbox.
Seed data comes from the anonymised dump of the first of the month.
On a Mac the file watcher needs polling, or changes are not seen.
--
Working on the shop from anywhere
Only the payment sandbox needs the VPN, all the rest of the shop runs in containers.
The anonymised dump of the first of the month provides seed data.
Macs need polling for the file watcher, as changes are not noticed otherwise.
--
Local development of the app
Everything needed for the app runs in the emulator; a real phone is only for the camera.
Seed data is made by a script, since no real data may be on a phone.
On Windows the bundler needs long paths, or the build stops.
====
Deleting a customer
A deletion is done within thirty days; until then the account is only hidden.
Invoices stay for ten years by law, with the name but without the address of delivery.
Backups are not rewritten: a restored customer is deleted again from the list of deletions.
--
What happens when a customer asks to be deleted
The account is hidden at first and deleted within thirty days.
The law wants invoices kept for ten years; they keep the name and lose the delivery address.
We do not rewrite backups, but after a restore the list of deletions is gone through again.
--
Deleting a supplier
A supplier is never deleted, only closed; its articles stay visible in old orders.
Contracts stay for six years by law, with all their papers.
Closed suppliers are left out of the price comparison at once.
====
Caching of product pages
Product pages are cached for ten minutes at the edge, prices for one.
A purge by tag reaches all nodes within three seconds; a purge by address does not work for variants.
Logged-in customers bypass the cache completely, because prices are theirs.
--
Edge cache for products
At the edge, prices live for a minute and product pages for ten.
Purging by tag takes three seconds to reach all nodes, while purging by address misses variants.
As prices belong to the customer, whoever is logged in bypasses the cache.
--
Caching of search results
Search results are cached for thirty seconds in the service, facets for five minutes.
There is no purge; an index run simply writes new keys.
Logged-in customers share the cache, because prices are added later.
====
The monolith's settings page
Settings are saved with a version; the last writer loses and gets a message.
Changes are in force after the next poll, which every node does twice a minute.
The export of settings leaves out whatever is marked as secret.
--
How settings are saved and spread
Each save carries a version, so the last writer loses and is told.
Every node polls twice a minute, and then changes are in force.
What is marked as secret is left out when settings are exported.
--
The monolith's permissions page
Permissions are saved at once; the last writer wins without a message.
Changes are in force at the next login of the user concerned.
The export of permissions is for auditors and holds everything.
====
Vendored fonts
The fonts lie in the repository, since the licence forbids loading them from elsewhere.
Only the Latin and Greek parts are there; Cyrillic would double the page.
An update needs the designer, because the new version has other metrics.
--
Why fonts are in the repository
The licence does not allow loading the fonts from another place, so they lie in the repository.
Cyrillic would double the size of a page; there are the Latin and the Greek part only.
Since the new version's metrics differ, the designer has to be there for an update.
--
Vendored icons
The icons lie in the repository as one sprite, since single files were slow.
Only the outlined style is there; filled icons would look like buttons.
An update needs nobody, because names are stable.
====
On-call of the shop
The on-call week begins on Tuesday at ten, with a handover of half an hour.
Pages between eleven at night and seven are only for orders that cannot be placed.
Whoever was woken takes the next morning off without asking.
--
How on-call works for the shop
There is a handover of half an hour on Tuesday at ten, when the on-call week begins.
Only orders that cannot be placed may page between eleven at night and seven.
If you were woken, the next morning is off; you need not ask.
--
On-call of the data platform
The on-call week begins on Monday at nine, without a handover.
Nobody is paged at night; a late report is a ticket for the morning.
Whoever works on a weekend takes another day off within the month.
====
Keys of the translation files
A key names the place and not the text, so that it survives a change of the words.
Missing translations fall back to English, and the build lists them.
Plural forms are mandatory even where German does not need them, because Polish does.
--
Naming translation keys
Keys are named after the place instead of the text, and so survive when words change.
The build lists missing translations, which fall back to English.
Polish needs plural forms, so they are mandatory, even where German could do without.
--
Keys of the analytics events
A key names the action and its object, in the past tense, so that reports read like sentences.
Unknown events are dropped by the collector, and a daily mail lists them.
Properties are mandatory even where they are empty, because the warehouse has fixed columns.
====
Warehouse scanners
Scanners run Android 9 and cannot be updated; the web app must work in Chrome 68.
They lose the network between aisles 12 and 15, so scans are queued for up to ten minutes.
A scan is only confirmed by the beep of the server, not by that of the device.
--
What the web app must cope with on scanners
The web app has to work in Chrome 68, since scanners are stuck with Android 9.
Between aisles 12 and 15 there is no network, and scans are queued for as long as ten minutes.
Only the beep of the server confirms a scan; the device's own one does not.
--
Warehouse printers
Printers run firmware 4 and speak ZPL only; PDF labels are converted by the print server.
They lose their settings after a power cut, so the profile is sent every morning.
A label is only done when the printer reports it, not when the job was taken.
"""
)


def pairs(sets: list[Set]) -> list[tuple[str, Text, Text, bool]]:
    """Kind, two cards, and whether they say the same."""
    found = []
    for number, item in enumerate(sets):
        card, twin, other = item
        turned = Text(twin.topic, tuple(reversed(card.lines)))
        more = Text(twin.topic, (*card.lines, EXTRAS[number % len(EXTRAS)]))
        half = Text(twin.topic, (card.lines[0], *twin.lines[1:]))
        found += [
            ("reordered", card, turned, True),
            ("extended", card, more, True),
            ("half reworded", card, half, True),
            ("reworded", card, twin, True),
            ("look-alike", card, other, False),
            ("family", *_family(card, number, (" has {at} racks and", " {badge}")), False),
            ("namesakes", *_family(card, number, (" has", "")), False),
        ]
    return found


EXTRAS = (
    "The dashboard for it is the third one in the operations folder.",
    "It was last rehearsed in 2025, and took 45 minutes.",
    "Questions go to the platform channel first.",
    "The budget for it is 200 euros a month.",
    "See the runbook before you touch it at night.",
)
NAMES = ("Oslo", "Porto", "Lyon", "Ghent", "Turin", "Leeds")


def _family(card: Text, number: int, more: tuple[str, str]) -> tuple[Text, Text]:
    """One template for two sites: all but the site, and its numbers if it has some, is the same."""
    one, two = NAMES[number % len(NAMES)], NAMES[(number + 1) % len(NAMES)]

    def site(name: str, at: int) -> Text:
        first, second = (part.format(at=at, badge=at * 7) for part in more)
        lines = (f"The {name} site{first} its own uplink.", f"Access to {name} is by badge{second}.")
        return Text(f"Notes on {name}: {card.topic}", (*lines, card.lines[0]))

    return site(one, number + 3), site(two, number + 11)
