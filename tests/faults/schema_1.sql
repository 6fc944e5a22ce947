-- A store as Laureate 0.1 wrote it at schema 1, with one run of one cell.
CREATE TABLE environments (id INTEGER PRIMARY KEY, data TEXT NOT NULL UNIQUE);
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT, status TEXT NOT NULL, command TEXT NOT NULL,
    scale TEXT NOT NULL, seeds INTEGER NOT NULL, problem TEXT NOT NULL,
    environment INTEGER NOT NULL REFERENCES environments
);
CREATE TABLE cells (
    id INTEGER PRIMARY KEY, fingerprint TEXT NOT NULL, start INTEGER NOT NULL, count INTEGER NOT NULL,
    paper TEXT NOT NULL, experiment TEXT NOT NULL, arm TEXT NOT NULL, problem TEXT NOT NULL, scale TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')), seconds REAL NOT NULL, compile_seconds REAL NOT NULL,
    error TEXT NOT NULL, finished TEXT NOT NULL, run INTEGER NOT NULL REFERENCES runs
);
CREATE INDEX cells_by_key ON cells (fingerprint, start, status);
CREATE TABLE run_cells (
    run INTEGER NOT NULL REFERENCES runs, cell INTEGER NOT NULL REFERENCES cells, cached INTEGER NOT NULL,
    PRIMARY KEY (run, cell)
) WITHOUT ROWID;
CREATE TABLE observations (
    cell INTEGER NOT NULL REFERENCES cells, metric TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (cell, metric)
);
CREATE TABLE verdicts (
    run INTEGER NOT NULL REFERENCES runs, claim TEXT NOT NULL, problem TEXT NOT NULL, data TEXT NOT NULL,
    PRIMARY KEY (run, claim)
);
CREATE INDEX verdicts_by_claim ON verdicts (claim, problem, run);
CREATE TABLE artefacts (
    run INTEGER NOT NULL REFERENCES runs, name TEXT NOT NULL, media_type TEXT NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (run, name)
);
INSERT INTO environments VALUES (1, '{"commit": "", "machine": "an old cpu", "versions": {}}');
INSERT INTO runs VALUES (1, '2026-01-01T00:00:00+00:00', '2026-01-01T00:01:00+00:00', 'finished', 'laureate run toy', 'smoke', 2, 'default', 1);
INSERT INTO cells VALUES (1, 'abc', 0, 2, 'toy', 'toy', 'ours', 'default', 'smoke', 'done', 1.5, 0.5, '', '2026-01-01T00:00:30+00:00', 1);
INSERT INTO run_cells VALUES (1, 1, 0);
INSERT INTO verdicts VALUES (1, 'toy/better', 'default', '{"id": "toy/better", "verdict": "supported", "paper": "toy"}');
PRAGMA user_version = 1;
