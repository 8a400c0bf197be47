BEGIN TRANSACTION;
CREATE TABLE bases (
	number INTEGER NOT NULL, 
	file VARCHAR NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	manifests JSON NOT NULL, 
	"by" VARCHAR NOT NULL, 
	at DATETIME NOT NULL, 
	PRIMARY KEY (number)
);
CREATE TABLE break_acts (
	number INTEGER NOT NULL, 
	break_id VARCHAR NOT NULL, 
	act VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	at DATETIME NOT NULL, 
	owner VARCHAR NOT NULL, 
	reason VARCHAR NOT NULL, 
	note VARCHAR NOT NULL, 
	amount VARCHAR, 
	rows INTEGER NOT NULL, 
	returns INTEGER NOT NULL, 
	PRIMARY KEY (number)
);
CREATE TABLE breaks (
	break_id VARCHAR NOT NULL, 
	rule VARCHAR NOT NULL, 
	connection VARCHAR NOT NULL, 
	partner VARCHAR, 
	month DATE, 
	currency VARCHAR, 
	subject VARCHAR NOT NULL, 
	cause VARCHAR NOT NULL, 
	used_amount VARCHAR, 
	billed_amount VARCHAR, 
	difference VARCHAR, 
	rows INTEGER NOT NULL, 
	first_seen DATETIME NOT NULL, 
	last_seen DATETIME NOT NULL, 
	gone_at DATETIME, 
	returns INTEGER NOT NULL, 
	PRIMARY KEY (break_id)
);
CREATE TABLE budgets (
	actor VARCHAR NOT NULL, 
	boot VARCHAR NOT NULL, 
	learned INTEGER, 
	learned_at FLOAT NOT NULL, 
	blocked_until FLOAT NOT NULL, 
	blocked_to FLOAT NOT NULL, 
	gap FLOAT NOT NULL, 
	hold FLOAT NOT NULL, 
	ease_at FLOAT NOT NULL, 
	incident_at FLOAT NOT NULL, 
	sent_at FLOAT NOT NULL, 
	turn FLOAT NOT NULL, 
	nightly FLOAT NOT NULL, 
	adhoc FLOAT NOT NULL, 
	foreign_uses INTEGER NOT NULL, 
	foreign_at FLOAT NOT NULL, 
	PRIMARY KEY (actor)
);
CREATE TABLE closes (
	sequence INTEGER NOT NULL, 
	month DATE NOT NULL, 
	number INTEGER NOT NULL, 
	act VARCHAR NOT NULL, 
	preparer VARCHAR NOT NULL, 
	reviewer VARCHAR NOT NULL, 
	at DATETIME NOT NULL, 
	note VARCHAR NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	records INTEGER NOT NULL, 
	PRIMARY KEY (sequence)
);
CREATE TABLE corrections (
	sequence INTEGER NOT NULL, 
	month DATE NOT NULL, 
	number INTEGER NOT NULL, 
	connection VARCHAR, 
	side VARCHAR NOT NULL, 
	id VARCHAR, 
	partner VARCHAR, 
	currency VARCHAR, 
	amount_then VARCHAR, 
	amount_now VARCHAR, 
	difference VARCHAR, 
	why VARCHAR NOT NULL, 
	posted_to DATE NOT NULL, 
	seen_at DATETIME NOT NULL, 
	PRIMARY KEY (sequence)
);
CREATE TABLE decisions (
	number INTEGER NOT NULL, 
	kind VARCHAR NOT NULL, 
	connection VARCHAR NOT NULL, 
	stream VARCHAR NOT NULL, 
	manifest VARCHAR NOT NULL, 
	subject VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	at DATETIME NOT NULL, 
	note VARCHAR NOT NULL, 
	PRIMARY KEY (number)
);
CREATE TABLE descriptions (
	connection VARCHAR NOT NULL, 
	number INTEGER NOT NULL, 
	body BLOB NOT NULL, 
	base VARCHAR NOT NULL, 
	first_seen_at DATETIME NOT NULL, 
	last_seen_at DATETIME NOT NULL, 
	PRIMARY KEY (connection, number)
);
CREATE TABLE identities (
	number INTEGER NOT NULL, 
	connection VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	words VARCHAR NOT NULL, 
	pinned_at DATETIME NOT NULL, 
	pinned_by VARCHAR, 
	PRIMARY KEY (number)
);
CREATE TABLE interface_changes (
	connection VARCHAR NOT NULL, 
	number INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	stream VARCHAR, 
	path VARCHAR NOT NULL, 
	what VARCHAR NOT NULL, 
	"before" VARCHAR NOT NULL, 
	"after" VARCHAR NOT NULL, 
	meaning VARCHAR NOT NULL, 
	first_seen_at DATETIME NOT NULL, 
	PRIMARY KEY (connection, number, position)
);
CREATE TABLE interface_differences (
	connection VARCHAR NOT NULL, 
	stream VARCHAR NOT NULL, 
	position INTEGER NOT NULL, 
	field VARCHAR NOT NULL, 
	what VARCHAR NOT NULL, 
	described VARCHAR NOT NULL, 
	found VARCHAR NOT NULL, 
	manifest VARCHAR NOT NULL, 
	seen_at DATETIME NOT NULL, 
	PRIMARY KEY (connection, stream, position)
);
CREATE TABLE keys (
	connection VARCHAR NOT NULL, 
	stream VARCHAR NOT NULL, 
	"key" VARCHAR, 
	scan VARCHAR(36) NOT NULL, 
	pinned_at DATETIME NOT NULL, 
	PRIMARY KEY (connection, stream)
);
CREATE TABLE manifests (
	sequence INTEGER NOT NULL, 
	connection VARCHAR NOT NULL, 
	stream VARCHAR NOT NULL, 
	day DATE NOT NULL, 
	number INTEGER NOT NULL, 
	scan VARCHAR(36) NOT NULL, 
	file VARCHAR NOT NULL, 
	pages INTEGER NOT NULL, 
	rows INTEGER NOT NULL, 
	proof JSON NOT NULL, 
	written_at DATETIME NOT NULL, 
	PRIMARY KEY (sequence), 
	UNIQUE (connection, stream, day, number), 
	UNIQUE (scan)
);
INSERT INTO "manifests" VALUES(1,'default','usage','2026-01-01',1,'e67199fa-00a1-41d8-a728-dc9e83bf9392','default/usage/2026-01-01.001.json',3,1200,'{"grade": "COMPLETE", "rows": 1190, "requests": 4, "repairs": 0, "chains": 1, "inversions": 0, "key": "id", "inferred": false, "begun_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:01Z", "assumption": "", "reason": "", "flags": [], "estimate": null}','2026-01-01 00:00:01.000000');
CREATE TABLE pages (
	scan VARCHAR(36) NOT NULL, 
	position INTEGER NOT NULL, 
	"offset" INTEGER NOT NULL, 
	"limit" INTEGER NOT NULL, 
	rows INTEGER NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	status INTEGER NOT NULL, 
	request_id VARCHAR, 
	sent_at DATETIME NOT NULL, 
	answered_at DATETIME NOT NULL, 
	rate_limit JSON NOT NULL, 
	PRIMARY KEY (scan, position)
);
INSERT INTO "pages" VALUES('e67199fa-00a1-41d8-a728-dc9e83bf9392',0,0,500,500,'0000000000000000000000000000000000000000000000000000000000000000',200,'r-0','2026-01-01 00:00:00.000000','2026-01-01 00:00:00.250000','{"x-ratelimit-limit": "5", "x-ratelimit-reset": "0"}');
CREATE TABLE redactions (
	old VARCHAR(64) NOT NULL, 
	new VARCHAR(64) NOT NULL, 
	rows JSON NOT NULL, 
	reason VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	at DATETIME NOT NULL, 
	PRIMARY KEY (old)
);
CREATE TABLE requests (
	number INTEGER NOT NULL, 
	run VARCHAR(36) NOT NULL, 
	stream VARCHAR, 
	method VARCHAR NOT NULL, 
	path VARCHAR NOT NULL, 
	"query" VARCHAR NOT NULL, 
	sent_at DATETIME NOT NULL, 
	waited FLOAT NOT NULL, 
	took FLOAT NOT NULL, 
	status INTEGER, 
	remaining INTEGER, 
	request_id VARCHAR, 
	error VARCHAR, 
	PRIMARY KEY (number)
);
INSERT INTO "requests" VALUES(1,'run-1','usage','GET','/v2/usage','limit=200','2026-01-01 00:00:00.000000',0.5,0.1,200,4,NULL,NULL);
CREATE TABLE rollbacks (
	number INTEGER NOT NULL, 
	newest INTEGER NOT NULL, 
	opened INTEGER NOT NULL, 
	"by" VARCHAR NOT NULL, 
	at DATETIME NOT NULL, 
	reason VARCHAR NOT NULL, 
	PRIMARY KEY (number)
);
CREATE TABLE runs (
	run VARCHAR(36) NOT NULL, 
	connection VARCHAR NOT NULL, 
	day DATE NOT NULL, 
	begun_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	outcome VARCHAR, 
	PRIMARY KEY (run)
);
INSERT INTO "runs" VALUES('run-1','default','2026-01-01','2026-01-01 00:00:00.000000','2026-01-01 00:00:09.000000','published');
CREATE TABLE scans (
	scan VARCHAR(36) NOT NULL, 
	run VARCHAR(36) NOT NULL, 
	connection VARCHAR NOT NULL, 
	stream VARCHAR NOT NULL, 
	day DATE NOT NULL, 
	address VARCHAR NOT NULL, 
	begun_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	status VARCHAR NOT NULL, 
	error VARCHAR, 
	proof JSON, 
	PRIMARY KEY (scan)
);
INSERT INTO "scans" VALUES('e67199fa-00a1-41d8-a728-dc9e83bf9392','run-1','default','usage','2026-01-01','','2026-01-01 00:00:00.000000','2026-01-01 00:00:01.000000','read',NULL,'{"grade": "COMPLETE", "rows": 1190, "requests": 4, "repairs": 0, "chains": 1, "inversions": 0, "key": "id", "inferred": false, "begun_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:01Z", "assumption": "", "reason": "", "flags": [], "estimate": null}');
CREATE TABLE slots (
	number INTEGER NOT NULL, 
	actor VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	taken_at FLOAT NOT NULL, 
	answered_at FLOAT, 
	credit FLOAT NOT NULL, 
	lost BOOLEAN NOT NULL, 
	PRIMARY KEY (number)
);
CREATE TABLE tellings (
	target VARCHAR NOT NULL, 
	alert VARCHAR NOT NULL, 
	about VARCHAR NOT NULL, 
	mark VARCHAR NOT NULL, 
	since DATETIME NOT NULL, 
	told_at DATETIME NOT NULL, 
	PRIMARY KEY (target, alert, about)
);
CREATE TABLE tickets (
	number INTEGER NOT NULL, 
	actor VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	lane VARCHAR NOT NULL, 
	looks_at FLOAT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (owner)
);
CREATE TABLE versions (
	version INTEGER NOT NULL, 
	run VARCHAR(36) NOT NULL, 
	file VARCHAR NOT NULL, 
	holds JSON NOT NULL, 
	counts JSON NOT NULL, 
	published_at DATETIME NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	totals JSON NOT NULL, 
	made_of JSON NOT NULL, 
	doubts JSON NOT NULL, 
	PRIMARY KEY (version)
);
CREATE INDEX ix_requests_run ON requests (run);
CREATE INDEX ix_identities_connection ON identities (connection);
CREATE INDEX slots_by_answer ON slots (actor, answered_at);
CREATE INDEX ix_break_acts_break_id ON break_acts (break_id);
CREATE INDEX corrections_of ON corrections (month, number);
COMMIT;
PRAGMA user_version = 8;
