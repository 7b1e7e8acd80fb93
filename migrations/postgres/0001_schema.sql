-- A bucket of PostgreSQL, whose tables many tenants share. `isolate.sql` adds the policies and what all buckets have.

-- Accounts

-- `pending_email` is the address that a user wants to have, until its confirmation code came back.
create table users (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  username text collate "C" not null,
  username_key text collate "C" not null,
  email text collate "C",
  email_key text collate "C",
  email_verified bigint not null,
  pending_email text collate "C",
  password text collate "C",
  roles text collate "C" not null,
  name text collate "C",
  first_name text collate "C",
  last_name text collate "C",
  full_name text collate "C",
  profile_image text collate "C",
  birth_date text collate "C",
  phone text collate "C",
  version bigint not null,
  created bigint not null,
  updated bigint not null,
  metadata text collate "C" not null,
  internal_metadata text collate "C" not null,
  primary key (tenant_id, _id),
  unique (tenant_id, username_key),
  unique (tenant_id, email_key)
);
create index users_by_time on users (tenant_id, created, _id);

create table sessions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  "user" text collate "C" not null,
  workspace text collate "C",
  kind text collate "C" not null check (kind in ('cookie', 'oauth')),
  user_agent text collate "C" not null,
  address text collate "C" not null,
  created bigint not null,
  used bigint not null,
  expires bigint not null,
  primary key (tenant_id, _id),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);
create index sessions_of_user on sessions (tenant_id, "user");
create index sessions_by_expiry on sessions (tenant_id, expires);

create table session_keys (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  hash text collate "C" not null,
  session text collate "C" not null,
  parent text collate "C",
  spent bigint,
  created bigint not null,
  expires bigint not null,
  primary key (tenant_id, hash),
  foreign key (tenant_id, session) references sessions (tenant_id, _id) on delete cascade
);
create index keys_of_session on session_keys (tenant_id, session);
create index keys_by_expiry on session_keys (tenant_id, expires);

create table api_tokens (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  "user" text collate "C" not null,
  workspace text collate "C",
  active_workspace text collate "C",
  hash text collate "C" not null,
  prefix text collate "C" not null,
  nickname text collate "C" not null,
  scopes text collate "C" not null,
  created bigint not null,
  used bigint,
  expires bigint,
  primary key (tenant_id, _id),
  unique (tenant_id, hash),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);
create index tokens_of_user on api_tokens (tenant_id, "user");
create index tokens_of_workspace on api_tokens (tenant_id, workspace);

-- Failed sign-ins by account, address and device, which slow the next ones down.
create table signin_failures (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  subject text collate "C" not null,
  count bigint not null,
  since bigint not null,
  primary key (tenant_id, subject)
);

-- Where users have signed in before, as hashes.
create table devices (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  "user" text collate "C" not null,
  device text collate "C" not null,
  seen bigint not null,
  primary key (tenant_id, "user", device),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);
create index devices_by_time on devices (tenant_id, seen);

-- Mails that somebody asked for to sign in, until their code or link is used.
create table email_signins (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  email text collate "C" not null,
  email_key text collate "C" not null,
  code text collate "C",
  link text collate "C",
  tries bigint not null,
  expires bigint not null,
  primary key (tenant_id, _id)
);
create unique index email_signins_by_link on email_signins (tenant_id, link);

-- What users were sent to prove who they are, by its hash. `code` is a short code that may be entered in place of the token.
create table one_time_tokens (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  hash text collate "C" not null,
  purpose text collate "C" not null,
  "user" text collate "C" not null,
  expires bigint not null,
  code text collate "C",
  code_expires bigint,
  email_key text collate "C",
  data text collate "C" not null,
  primary key (tenant_id, hash),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);
create index one_time_tokens_of_user on one_time_tokens (tenant_id, "user");
create index one_time_tokens_by_end on one_time_tokens (tenant_id, expires);

-- Verified addresses that were given up: whoever reads mail there can take the change back for a while.
create table email_changes (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  "user" text collate "C" not null,
  email text collate "C" not null,
  email_key text collate "C" not null,
  created bigint not null,
  expires bigint not null,
  primary key (tenant_id, _id),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);
create index email_changes_of_user on email_changes (tenant_id, "user");
create index email_changes_by_key on email_changes (tenant_id, email_key);
create index email_changes_by_end on email_changes (tenant_id, expires);

-- Second factors. Their secrets are in `sealed`, and the recovery codes are hashes.
create table totp (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  "user" text collate "C" not null,
  confirmed bigint not null,
  step bigint not null,
  primary key (tenant_id, "user"),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

create table recovery_codes (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  "user" text collate "C" not null,
  hash text collate "C" not null,
  primary key (tenant_id, "user", hash),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);

-- Whom a sign-in provider knows, and who they are here.
create table identities (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  provider text collate "C" not null,
  subject text collate "C" not null,
  "user" text collate "C" not null,
  email text collate "C",
  created bigint not null,
  used bigint,
  primary key (tenant_id, provider, subject),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);
create index identities_of_user on identities (tenant_id, "user");

-- The public keys of authenticators, by which users sign in.
create table passkeys (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  "user" text collate "C" not null,
  credential text collate "C" not null,
  public_key text collate "C" not null,
  counter bigint not null,
  host text collate "C" not null,
  name text collate "C" not null,
  transports text collate "C" not null,
  backed_up bigint not null,
  created bigint not null,
  used bigint,
  primary key (tenant_id, _id),
  unique (tenant_id, credential),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);
create index passkeys_of_user on passkeys (tenant_id, "user");

-- What an authenticator is asked to sign, by its hash, once.
create table passkey_challenges (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  hash text collate "C" not null,
  purpose text collate "C" not null,
  "user" text collate "C",
  origin text collate "C" not null,
  expires bigint not null,
  primary key (tenant_id, hash),
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);
create index passkey_challenges_of_user on passkey_challenges (tenant_id, "user");
create index passkey_challenges_by_end on passkey_challenges (tenant_id, expires);

-- Workspaces

create table workspaces (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  logo text collate "C",
  labels text collate "C" not null,
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id)
);
create index workspaces_by_time on workspaces (tenant_id, created, _id);

create table members (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  workspace text collate "C" not null,
  "user" text collate "C" not null,
  roles text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, workspace, "user"),
  foreign key (tenant_id, workspace) references workspaces (tenant_id, _id) on delete cascade,
  foreign key (tenant_id, "user") references users (tenant_id, _id) on delete cascade
);
create index members_by_user on members (tenant_id, "user");

-- `granted_roles` are the roles that an admin of the tenant gave.
create table invites (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  workspace text collate "C" not null,
  email_key text collate "C" not null,
  email text collate "C" not null,
  name text collate "C",
  roles text collate "C" not null,
  granted_roles text collate "C" not null default '[]',
  created bigint not null,
  primary key (tenant_id, _id),
  unique (tenant_id, workspace, email_key),
  foreign key (tenant_id, workspace) references workspaces (tenant_id, _id) on delete cascade
);
create index invites_by_email on invites (tenant_id, email_key);

-- Blueprints

-- Entities have the `code` of their blueprint in the place of its key, which takes less room. `form` counts the changes that
-- altered entities, and `indexing` those of indexes, so that every writer notices them. `history_number` is the history of a
-- blueprint, and `history_fields` has the numbers of its fields there: they outlast a rename, and no other field gets them.
create table blueprints (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  key text collate "C" not null,
  _id text collate "C" not null,
  code text collate "C" not null default '',
  name text collate "C" not null,
  version bigint not null,
  form bigint not null default 0,
  indexing bigint not null default 0,
  history_number bigint,
  created bigint not null,
  updated bigint not null,
  description text collate "C" not null,
  definition text collate "C" not null,
  history_fields text collate "C",
  primary key (tenant_id, key),
  unique (tenant_id, _id)
);

-- A field's number stands for it in the index: rows stay small, and a field can be renamed without touching them.
create table fields (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  number bigint generated by default as identity,
  blueprint text collate "C" not null,
  key text collate "C" not null,
  index_keys bigint not null default 0,
  primary key (tenant_id, number),
  unique (tenant_id, blueprint, key),
  foreign key (tenant_id, blueprint) references blueprints (tenant_id, key) on delete cascade
);

-- The indexes of fields. Most are built when a query first needs them. `parts` has what an index of several fields leads by.
create table field_indexes (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  blueprint text collate "C" not null,
  number bigint not null,
  parts text collate "C",
  state text collate "C" not null,
  reason text collate "C" not null,
  since bigint not null,
  used bigint not null,
  done bigint not null,
  upto bigint not null,
  primary key (tenant_id, blueprint, number),
  foreign key (tenant_id, blueprint) references blueprints (tenant_id, key) on delete cascade
);

-- What the entities of a blueprint become before a change of it is in force, and how far that is.
create table alterations (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  blueprint text collate "C" not null,
  form bigint not null,
  state text collate "C" not null,
  created bigint not null,
  entity bigint not null,
  upto bigint not null,
  done bigint not null,
  total bigint not null,
  problem text collate "C",
  since bigint not null,
  change text collate "C" not null,
  primary key (tenant_id, blueprint),
  foreign key (tenant_id, blueprint) references blueprints (tenant_id, key) on delete cascade
);

-- Entities

-- The `_id` is null where it is the identifier. There is no foreign key to the blueprint: every write of entities checks the
-- version of their blueprint. `altered` is the document from the form `form` of the blueprint on, which is -1 where that is still
-- to be made.
-- `version_row` is the latest row of entity_versions, so that a change reads no version.
-- Small columns come first: those behind a long document are found only by reading all of it.
create table entities (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  seq bigint generated by default as identity,
  version bigint not null,
  created bigint not null,
  updated bigint not null,
  form bigint,
  history bigint,
  version_number bigint,
  version_row bigint,
  _id text collate "C",
  blueprint text collate "C" not null,
  identifier text collate "C" not null,
  "user" text collate "C",
  workspace text collate "C",
  creator text collate "C",
  shown text collate "C" not null,
  keys jsonb not null,
  altered text collate "C",
  primary key (tenant_id, seq),
  unique (tenant_id, _id),
  unique (tenant_id, blueprint, identifier)
);
create index entities_by_time on entities (tenant_id, blueprint, created, seq);
create index entities_of_user on entities (tenant_id, blueprint, "user", created, seq);
create index entities_of_workspace on entities (tenant_id, blueprint, workspace, created, seq)
  where workspace is not null;
create index entities_to_alter on entities (tenant_id, blueprint, seq) where form = -1;
create index entities_by_change on entities (tenant_id, blueprint, updated, created, seq);

create table entity_index (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  field bigint not null,
  path text collate "C" not null,
  value text collate "C" not null,
  created bigint not null,
  entity bigint not null,
  primary key (tenant_id, field, path, value, created, entity)
);

-- What blueprints with a history keep of earlier states of their entities. Each row names the one before it of its entity.
create table entity_versions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  seq bigint generated by default as identity,
  history bigint not null,
  number bigint not null,
  at bigint not null,
  since bigint not null,
  action bigint not null,
  previous bigint,
  identifier text collate "C" not null,
  author text collate "C",
  former text collate "C",
  primary key (tenant_id, seq)
);
create index entity_removals on entity_versions (tenant_id, history, identifier, seq, at) where action = 2;

-- Of which blueprints the changes are kept: all after number `since`, for as long as somebody listened lately.
create table change_logs (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  blueprint text collate "C" not null,
  since bigint not null,
  until bigint not null,
  primary key (tenant_id, blueprint),
  foreign key (tenant_id, blueprint) references blueprints (tenant_id, key) on delete cascade
);

-- Numbers grow with each change of a tenant by as much as it takes room: so they tell how much is kept.
create table entity_changes (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  number bigint not null,
  blueprint text collate "C" not null,
  made bigint not null,
  shown_before text collate "C",
  keys_before text collate "C",
  shown text collate "C",
  keys text collate "C",
  primary key (tenant_id, number),
  foreign key (tenant_id, blueprint) references change_logs (tenant_id, blueprint) on delete cascade
);
create index changes_of_blueprint on entity_changes (tenant_id, blueprint, number);

-- The numbers of entities that changed, for blueprints of which something is kept in memory: counts, and texts that patterns
-- are compared with. Without rows in the first table, writers write nothing to the second.
create table tracked_blueprints (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  blueprint text collate "C" not null,
  started bigint not null,
  until bigint not null,
  primary key (tenant_id, blueprint),
  foreign key (tenant_id, blueprint) references blueprints (tenant_id, key) on delete cascade
);

create table tracked_changes (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  blueprint text collate "C" not null,
  number bigint not null,
  entities text collate "C" not null,
  primary key (tenant_id, blueprint, number)
);

create table imports (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  blueprint text collate "C" not null,
  busy bigint not null,
  primary key (tenant_id, _id)
);

create table import_undo (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  import text collate "C" not null,
  entity bigint not null,
  before text collate "C",
  primary key (tenant_id, import, entity)
);

-- Search

-- Which words each entity has, of those blueprints that were ever searched. The words are made by the application.
create table search_words (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  entity bigint not null,
  words tsvector not null,
  primary key (tenant_id, entity)
);
-- With row-level security, only leakproof operators may use an index, and `@@` is none of them. This view has the condition of
-- the policy itself. It reads as its owner, whom the policy of this one table does not bind (`isolate.sql`).
create index search_words_by_word on search_words using gin (words) with (gin_pending_list_limit = 256);
-- The number of a field is a part of its words, so they hardly ever are those of two tenants. `is true` keeps the condition from
-- an index: PostgreSQL would combine it with all rows of the tenant.
create view searched_words as
  select entity, words from search_words where (tenant_id = (select current_setting('app.tenant')::uuid)) is true;

create table search_progress (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  blueprint text collate "C" not null,
  done bigint not null,
  upto bigint not null,
  primary key (tenant_id, blueprint),
  foreign key (tenant_id, blueprint) references blueprints (tenant_id, key) on delete cascade
);

-- The words of each chunk of knowledge, with its store's number. They are made by the application.
create table search_chunks (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  store bigint not null,
  entity bigint not null,
  words tsvector not null,
  primary key (tenant_id, store, entity)
);

create table search_files (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  file text collate "C" not null,
  primary key (tenant_id, file)
);

-- Content

create table configurations (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  key text collate "C" not null,
  public bigint not null,
  kind text collate "C" not null,
  description text collate "C" not null,
  version bigint not null default 1,
  created bigint not null,
  updated bigint not null,
  metadata text collate "C" not null,
  primary key (tenant_id, _id),
  unique (tenant_id, key)
);

create table components (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  identifier text collate "C" not null,
  path text collate "C" not null,
  builds bigint not null,
  size bigint not null,
  version bigint not null,
  created bigint not null,
  updated bigint not null,
  component_name text collate "C" not null,
  description text collate "C" not null,
  required_props text collate "C" not null,
  content text collate "C" not null,
  primary key (tenant_id, _id),
  unique (tenant_id, identifier)
);

create table builds (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  component text collate "C" not null,
  path text collate "C" not null,
  number bigint not null,
  js text collate "C" not null,
  css text collate "C" not null,
  primary key (tenant_id, component, path),
  foreign key (tenant_id, component) references components (tenant_id, _id) on delete cascade
);
create index builds_by_path on builds (tenant_id, path);

create table blocks (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  content_type text collate "C" not null check (content_type in ('content', 'html')),
  size bigint not null,
  version bigint not null,
  created bigint not null,
  updated bigint not null,
  rules text collate "C",
  description text collate "C" not null,
  content text collate "C" not null,
  shown text collate "C",
  primary key (tenant_id, _id)
);
create index blocks_by_time on blocks (tenant_id, created, _id);
create index blocks_by_name on blocks (tenant_id, name, _id);

-- A content is stored once, however many files have it. `claimed` is when an upload last needed it, and one that is being
-- removed is not used again before it is gone. `thumbnails` are the names and bytes of thumbnails beside it, as JSON.
create table file_contents (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  sha256 text collate "C" not null,
  size bigint not null,
  claimed bigint not null,
  removing bigint not null,
  thumbnail_bytes bigint not null default 0,
  thumbnails text collate "C",
  primary key (tenant_id, sha256)
);

-- Files that no entity names are removed, except those that are kept. `unused` is since when no entity names a file.
create table files (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  type text collate "C" not null,
  size bigint not null,
  width bigint,
  height bigint,
  sha256 text collate "C" not null,
  owner text collate "C" not null,
  workspace text collate "C",
  created bigint not null,
  keep bigint not null default 1,
  unused bigint,
  primary key (tenant_id, _id),
  foreign key (tenant_id, sha256) references file_contents (tenant_id, sha256)
);
create index files_by_time on files (tenant_id, created, _id);
create index files_by_owner on files (tenant_id, owner, created, _id);
create index files_by_content on files (tenant_id, sha256);

-- A deployment is one row: the contents of its files are in file_contents. The one with the highest activation is active. The
-- manifest is last, so that lists do not read its pages.
create table site_deployments (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  activation bigint not null,
  spa bigint not null,
  files bigint not null,
  bytes bigint not null,
  deployed_by text collate "C" not null,
  created bigint not null,
  manifest text collate "C" not null,
  primary key (tenant_id, _id)
);

-- Events and jobs

-- What has happened, in the order in which it was committed. `cause` is the integration of whose run an event comes, `depth` is
-- how many runs led to it, and `trace` is the trace (W3C traceparent) of the request that caused it.
create table events (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  seq bigint generated by default as identity,
  created bigint not null,
  depth bigint not null default 0,
  _id text collate "C" not null,
  source text collate "C" not null,
  kind text collate "C" not null,
  event_name text collate "C" not null,
  "user" text collate "C",
  workspace text collate "C",
  cause text collate "C",
  trace text collate "C",
  description text collate "C" not null,
  metadata text collate "C" not null,
  primary key (tenant_id, seq),
  unique (tenant_id, _id)
);
create index events_by_time on events (tenant_id, created, seq);
create index events_by_kind on events (tenant_id, kind, created, seq);
create index events_by_name on events (tenant_id, event_name, created, seq);
create index events_of_user on events (tenant_id, "user", created, seq) where "user" is not null;

-- How far somebody has read the events.
create table cursors (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  seq bigint not null,
  primary key (tenant_id, name)
);

-- What is to be done outside of requests. Only the first that waits in a lane is ever due. Jobs that were never tried, and those
-- whose last attempt failed, have indexes of their own: each is found without the other.
create table jobs (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  seq bigint generated by default as identity,
  attempts bigint not null,
  due bigint,
  created bigint not null,
  finished bigint,
  _id text collate "C" not null,
  kind text collate "C" not null,
  lane text collate "C" not null,
  state text collate "C" not null,
  trace text collate "C",
  payload text collate "C" not null,
  outcome text collate "C",
  primary key (tenant_id, seq),
  unique (tenant_id, _id)
);
create index jobs_by_lane on jobs (tenant_id, lane, state, seq);
create index jobs_by_kind on jobs (tenant_id, kind, state, finished);
create index jobs_fresh on jobs (tenant_id, due, seq) where due is not null and attempts = 0;
create index jobs_retried on jobs (tenant_id, due, seq) where due is not null and attempts > 0;

-- Which process does a kind of work, one at a time.
create table leases (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  holder text collate "C",
  token bigint not null,
  expires bigint not null,
  primary key (tenant_id, name)
);

-- The time for all who share this database, in ms; within a transaction it goes on.
create view clock as select (extract(epoch from clock_timestamp()) * 1000)::bigint as now;

-- What was written to people.
create table mails (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  recipient text collate "C" not null,
  recipient_key text collate "C" not null,
  template text collate "C" not null,
  "user" text collate "C",
  state text collate "C" not null,
  subject text collate "C",
  error text collate "C",
  created bigint not null,
  sent bigint,
  data text collate "C" not null,
  text text collate "C",
  html text collate "C",
  primary key (tenant_id, _id)
);
create index mails_by_time on mails (tenant_id, created, _id);
create index mails_to on mails (tenant_id, recipient_key, sent);

-- Plugins, lambdas and integrations

-- Other servers that take part. Their secrets are in `sealed`.
create table plugins (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  description text collate "C" not null,
  manifest_url text collate "C",
  api_path text collate "C",
  proxy_url text collate "C",
  active bigint not null,
  account text collate "C",
  former_until bigint,
  last_error text collate "C",
  failed bigint,
  succeeded bigint,
  created bigint not null,
  updated bigint not null,
  subscribed_events text collate "C" not null,
  primary key (tenant_id, _id),
  unique (tenant_id, name),
  unique (tenant_id, api_path),
  unique (tenant_id, account)
);

-- What plugins were told, and what they answered.
create table deliveries (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  plugin text collate "C" not null,
  event text collate "C" not null,
  source text collate "C" not null,
  kind text collate "C" not null,
  event_name text collate "C" not null,
  hook_url text collate "C" not null,
  state text collate "C" not null,
  attempts bigint not null,
  status bigint,
  duration bigint,
  error text collate "C",
  due bigint,
  created bigint not null,
  updated bigint not null,
  answer text collate "C" not null,
  primary key (tenant_id, _id)
);
create index deliveries_of_plugin on deliveries (tenant_id, plugin, created, _id);
create index deliveries_by_state on deliveries (tenant_id, plugin, state, created, _id);
create index deliveries_by_time on deliveries (tenant_id, updated);

create table lambdas (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  description text collate "C" not null,
  version bigint not null,
  revision bigint not null,
  size bigint not null,
  timeout_ms bigint not null,
  memory_mb bigint not null,
  service_role text collate "C",
  created bigint not null,
  updated bigint not null,
  env text collate "C" not null,
  primary key (tenant_id, _id)
);

create table lambda_versions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  lambda text collate "C" not null,
  version bigint not null,
  "user" text collate "C",
  created bigint not null,
  code text collate "C" not null,
  js text collate "C" not null,
  primary key (tenant_id, lambda, version),
  foreign key (tenant_id, lambda) references lambdas (tenant_id, _id) on delete cascade
);

create table lambda_runs (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  lambda text collate "C" not null,
  version bigint not null,
  cause text collate "C" not null,
  status bigint not null,
  error text collate "C",
  started bigint not null,
  duration bigint not null,
  "user" text collate "C",
  logs text collate "C" not null,
  primary key (tenant_id, _id)
);
create index lambda_runs_by_time on lambda_runs (tenant_id, lambda, started, _id);
create index lambda_runs_by_age on lambda_runs (tenant_id, started);

-- Other servers, and how they are called. Their secrets are in `sealed`.
create table connections (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  kind text collate "C" not null,
  labels text collate "C" not null,
  version bigint not null,
  created bigint not null,
  updated bigint not null,
  metadata text collate "C" not null,
  primary key (tenant_id, _id)
);

-- What is done when a request comes, an event happens or a time is due.
create table integrations (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C",
  active bigint not null,
  guest bigint not null,
  trigger_kind text collate "C" not null,
  target_kind text collate "C" not null,
  source text collate "C",
  roles text collate "C" not null,
  workspace_roles text collate "C" not null,
  plugin text collate "C",
  "user" text collate "C" not null,
  since bigint not null,
  version bigint not null,
  created bigint not null,
  updated bigint not null,
  "trigger" text collate "C" not null,
  target text collate "C" not null,
  primary key (tenant_id, _id)
);
create index integrations_by_trigger on integrations (tenant_id, trigger_kind, active, since);

-- Payments

-- What can be subscribed to.
create table plans (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  name text collate "C" not null,
  description text collate "C" not null,
  monthly_price bigint,
  yearly_price bigint,
  currency text collate "C" not null,
  dynamic bigint not null,
  is_active bigint not null,
  features text collate "C" not null,
  sort_order bigint not null,
  created bigint not null,
  updated bigint not null,
  limits text collate "C" not null,
  metadata text collate "C" not null,
  external_ids text collate "C" not null,
  primary key (tenant_id, _id)
);

-- What takes something off a price.
create table coupons (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  code text collate "C" not null,
  code_key text collate "C" not null,
  discount text collate "C" not null,
  currency text collate "C",
  max_redemptions bigint,
  current_redemptions bigint not null,
  valid_from bigint,
  valid_until bigint,
  benefit text collate "C",
  applicable_plan_ids text collate "C" not null,
  is_active bigint not null,
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id),
  unique (tenant_id, code_key)
);

-- Who pays for which plan: one at a time is in force. `drift` is in what a subscription differs from what its provider has, and
-- `conflict` the other subscription of the same payer. An event that names only a checkout is known by it.
create table subscriptions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  plan_id text collate "C" not null,
  billable_entity_type text collate "C" not null,
  billable_entity_id text collate "C" not null,
  status text collate "C" not null,
  billing_cycle text collate "C" not null,
  currency text collate "C" not null,
  base_price bigint,
  dynamic_amount bigint,
  coupon_id text collate "C",
  coupon_code text collate "C",
  discount text collate "C",
  coupon_benefit_ends_at bigint,
  current_period_start bigint,
  current_period_end bigint,
  period_anchor bigint,
  trial_ends_at bigint,
  past_due_since bigint,
  pause text collate "C",
  cancel_at_period_end bigint not null,
  cancel_requested bigint,
  ended_by text collate "C",
  conflict text collate "C",
  drift text collate "C",
  provider_kind text collate "C",
  provider_source_id text collate "C",
  external_subscription_id text collate "C",
  external_checkout_id text collate "C",
  checkout_until bigint,
  checkout_amount bigint,
  failed_checkouts bigint not null,
  last_event_at bigint,
  created bigint not null,
  updated bigint not null,
  metadata text collate "C" not null,
  primary key (tenant_id, _id)
);
create unique index subscriptions_in_force on subscriptions (tenant_id, billable_entity_type, billable_entity_id)
  where status in ('active', 'trialing');
create unique index subscriptions_at_provider on subscriptions (tenant_id, provider_kind, external_subscription_id)
  where external_subscription_id is not null;
create index subscriptions_of_entity on subscriptions (tenant_id, billable_entity_type, billable_entity_id, created, _id);
create index subscriptions_of_plan on subscriptions (tenant_id, plan_id, created, _id);
create index subscriptions_by_status on subscriptions (tenant_id, status, created, _id);
create index subscriptions_by_time on subscriptions (tenant_id, created, _id);
create index subscriptions_of_checkout on subscriptions (tenant_id, external_checkout_id)
  where external_checkout_id is not null;

-- Which subscription has redeemed which coupon.
create table redemptions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  subscription text collate "C" not null,
  coupon text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, subscription, coupon)
);

-- What was or is to be paid, as providers tell it. `refund_offered` is when admins were told to give a payment back.
create table invoices (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  subscription_id text collate "C" not null,
  billable_entity_type text collate "C" not null,
  billable_entity_id text collate "C" not null,
  amount bigint not null,
  currency text collate "C" not null,
  status text collate "C" not null,
  provider_kind text collate "C" not null,
  external_invoice_id text collate "C" not null,
  invoice_url text collate "C",
  paid_at bigint,
  period_start bigint,
  period_end bigint,
  created bigint not null,
  updated bigint not null,
  refund_offered bigint,
  items text collate "C" not null,
  primary key (tenant_id, _id)
);
create unique index invoices_at_provider on invoices (tenant_id, provider_kind, external_invoice_id);
create index invoices_of_entity on invoices (tenant_id, billable_entity_type, billable_entity_id, created, _id);
create index invoices_of_subscription on invoices (tenant_id, subscription_id, created);
create index invoices_by_time on invoices (tenant_id, created, _id);

-- What providers have told, as it came. What they tell of subscriptions that are not known yet is parked until these turn up.
create table provider_events (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  provider_kind text collate "C" not null,
  event_id text collate "C" not null,
  type text collate "C" not null,
  source text collate "C",
  status text collate "C" not null,
  occurred_at bigint not null,
  attempts bigint not null,
  next_at bigint,
  subscription_id text collate "C",
  external_subscription_id text collate "C",
  outcome text collate "C",
  created bigint not null,
  updated bigint not null,
  body text collate "C" not null,
  primary key (tenant_id, _id)
);
create unique index provider_events_once on provider_events (tenant_id, provider_kind, event_id);
create index provider_events_due on provider_events (tenant_id, next_at) where next_at is not null;
create index provider_events_by_status on provider_events (tenant_id, status, created, _id);
create index provider_events_by_time on provider_events (tenant_id, created, _id);
create index provider_events_of_subscription on provider_events (tenant_id, subscription_id, created);
create index provider_events_parked on provider_events (tenant_id, external_subscription_id) where status = 'parked';

-- AI

create table threads (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  integration text collate "C" not null,
  title text collate "C",
  "user" text collate "C" not null,
  workspace text collate "C",
  created bigint not null,
  updated bigint not null,
  summaries text collate "C" not null,
  primary key (tenant_id, _id)
);
create index threads_by_time on threads (tenant_id, created, _id);
create index threads_of_user on threads (tenant_id, "user", created, _id);
create index threads_of_workspace on threads (tenant_id, workspace, created, _id);

-- `original` is what a provider said beyond what clients know of a message, which it needs back.
create table thread_messages (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  thread text collate "C" not null,
  number bigint not null,
  role text collate "C" not null,
  name text collate "C",
  tool_call_id text collate "C",
  ours bigint not null,
  incomplete bigint not null,
  created bigint not null,
  content text collate "C" not null,
  tool_calls text collate "C",
  original text collate "C",
  primary key (tenant_id, thread, number),
  foreign key (tenant_id, thread) references threads (tenant_id, _id) on delete cascade
);

-- What tools answered in turns that wait for their clients.
create table tool_results (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  content text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, _id)
);
create index tool_results_by_age on tool_results (tenant_id, created);

-- `kind` is the work of the model: a completion or an embedding.
create table ai_usage (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  created bigint not null,
  kind text collate "C" not null default 'completion',
  integration text collate "C",
  source text collate "C" not null,
  model text collate "C" not null,
  "user" text collate "C",
  workspace text collate "C",
  thread text collate "C",
  prompt_tokens bigint not null,
  completion_tokens bigint not null,
  cost bigint not null,
  estimated bigint not null,
  status text collate "C" not null,
  duration_ms bigint not null,
  primary key (tenant_id, _id)
);
create index ai_usage_by_time on ai_usage (tenant_id, created, _id);
create index ai_usage_of_user on ai_usage (tenant_id, "user", created);
create index ai_usage_of_workspace on ai_usage (tenant_id, workspace, created);

-- What all completions of a day or a month took, for each of whom there may be a budget.
create table ai_spent (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  tokens bigint not null,
  cost bigint not null,
  primary key (tenant_id, _id)
);

create table vector_stores (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  seq bigint not null,
  _id text collate "C" not null,
  source text collate "C" not null,
  integration text collate "C" not null,
  scope text collate "C" not null check (scope in ('thread', 'user', 'workspace', 'tenant')),
  subject text collate "C" not null,
  model text collate "C",
  dimension bigint,
  version bigint not null,
  chunks bigint not null,
  expiration_after_days double precision,
  created bigint not null,
  expires bigint,
  primary key (tenant_id, seq),
  unique (tenant_id, _id),
  unique (tenant_id, integration, scope, subject, source)
);
create index vector_stores_of_subject on vector_stores (tenant_id, subject);
create index vector_stores_by_end on vector_stores (tenant_id, expires);

create table knowledge_files (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  store text collate "C" not null,
  name text collate "C" not null,
  "user" text collate "C" not null,
  chunks bigint not null,
  ready bigint not null,
  created bigint not null,
  metadata text collate "C" not null,
  primary key (tenant_id, _id)
);
create index knowledge_files_of_store on knowledge_files (tenant_id, store, ready, _id);
create index knowledge_files_unready on knowledge_files (tenant_id, ready, created);

create table knowledge_chunks (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  number bigint not null,
  file text collate "C" not null,
  position bigint not null,
  text text collate "C" not null,
  vector bytea,
  primary key (tenant_id, number),
  unique (tenant_id, file, position)
);
-- Numbers hardly get any smaller.
alter table knowledge_chunks alter column vector set storage external;

-- Common

-- Counters by topic, by which caches notice changes and numbers are assigned.
create table versions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  topic text collate "C" not null,
  version bigint not null,
  primary key (tenant_id, topic)
);

-- Encrypted values. `key` is the number of the key that they are encrypted by.
create table sealed (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  purpose text collate "C" not null,
  owner text collate "C" not null,
  name text collate "C" not null,
  key bigint not null,
  text text collate "C" not null,
  updated bigint not null,
  primary key (tenant_id, purpose, owner, name)
);
create index sealed_by_key on sealed (tenant_id, key);

-- `created` is where the thing that a request created can be read, to answer it after a crash.
create table idempotency_keys (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  name text collate "C" not null,
  attempt text collate "C" not null,
  fingerprint text collate "C",
  created text collate "C",
  busy bigint not null,
  expires bigint not null,
  answer text collate "C",
  primary key (tenant_id, name)
);
create index idempotency_keys_by_end on idempotency_keys (tenant_id, expires);

-- What a tenant has used on a day (UTC), in the unit of each kind.
create table daily_use (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  day text collate "C" not null,
  kind text collate "C" not null,
  amount bigint not null,
  primary key (tenant_id, day, kind)
);

-- The highest part of a quota, in percent, whose use was told by an event.
create table quota_levels (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  kind text collate "C" not null,
  period text collate "C" not null,
  level bigint not null,
  primary key (tenant_id, kind)
);
