-- The database of a tenant on SQLite. A table without rowids, whose key is a text, has a page less and is read in one step; a
-- table whose rows take 500 to 2,000 bytes would need a page more for each of them. A new file has a page for each index, so
-- tables of few rows have few.

-- Accounts

-- `pending_email` is the address that a user wants to have, until its confirmation code came back.
create table users (
  _id text not null primary key,
  username text not null,
  username_key text not null unique,
  email text,
  email_key text unique,
  email_verified integer not null,
  pending_email text,
  password text,
  roles text not null,
  name text,
  first_name text,
  last_name text,
  full_name text,
  profile_image text,
  birth_date text,
  phone text,
  version integer not null,
  created integer not null,
  updated integer not null,
  metadata text not null,
  internal_metadata text not null
) strict;
create index users_by_time on users (created, _id);

create table sessions (
  _id text not null primary key,
  user text not null references users (_id) on delete cascade,
  workspace text,
  kind text not null check (kind in ('cookie', 'oauth')),
  user_agent text not null,
  address text not null,
  created integer not null,
  used integer not null,
  expires integer not null
) strict, without rowid;
create index sessions_of_user on sessions (user);
create index sessions_by_expiry on sessions (expires);

create table session_keys (
  hash text not null primary key,
  session text not null references sessions (_id) on delete cascade,
  parent text,
  spent integer,
  created integer not null,
  expires integer not null
) strict, without rowid;
create index keys_of_session on session_keys (session);
create index keys_by_expiry on session_keys (expires);

create table api_tokens (
  _id text not null primary key,
  user text not null references users (_id) on delete cascade,
  workspace text,
  active_workspace text,
  hash text not null unique,
  prefix text not null,
  nickname text not null,
  scopes text not null,
  created integer not null,
  used integer,
  expires integer
) strict, without rowid;
create index tokens_of_user on api_tokens (user);
create index tokens_of_workspace on api_tokens (workspace);

-- Failed sign-ins by account, address and device, which slow the next ones down.
create table signin_failures (
  subject text not null primary key,
  count integer not null,
  since integer not null
) strict, without rowid;

-- Where users have signed in before, as hashes.
create table devices (
  user text not null references users (_id) on delete cascade,
  device text not null,
  seen integer not null,
  primary key (user, device)
) strict, without rowid;
create index devices_by_time on devices (seen);

-- Mails that somebody asked for to sign in, until their code or link is used.
create table email_signins (
  _id text not null primary key,
  email text not null,
  email_key text not null,
  code text,
  link text,
  tries integer not null,
  expires integer not null
) strict, without rowid;
create unique index email_signins_by_link on email_signins (link);

-- What users were sent to prove who they are, by its hash. `code` is a short code that may be entered in place of the token.
create table one_time_tokens (
  hash text not null primary key,
  purpose text not null,
  user text not null references users (_id) on delete cascade,
  expires integer not null,
  code text,
  code_expires integer,
  email_key text,
  data text not null
) strict, without rowid;
create index one_time_tokens_of_user on one_time_tokens (user);
create index one_time_tokens_by_end on one_time_tokens (expires);

-- Verified addresses that were given up: whoever reads mail there can take the change back for a while.
create table email_changes (
  _id text not null primary key,
  user text not null references users (_id) on delete cascade,
  email text not null,
  email_key text not null,
  created integer not null,
  expires integer not null
) strict, without rowid;
create index email_changes_of_user on email_changes (user);
create index email_changes_by_key on email_changes (email_key);
create index email_changes_by_end on email_changes (expires);

-- Second factors. Their secrets are in `sealed`, and the recovery codes are hashes.
create table totp (
  user text not null primary key references users (_id) on delete cascade,
  confirmed integer not null,
  step integer not null
) strict, without rowid;

create table recovery_codes (
  user text not null references users (_id) on delete cascade,
  hash text not null,
  primary key (user, hash)
) strict, without rowid;

-- Whom a sign-in provider knows, and who they are here.
create table identities (
  provider text not null,
  subject text not null,
  user text not null references users (_id) on delete cascade,
  email text,
  created integer not null,
  used integer,
  primary key (provider, subject)
) strict, without rowid;
create index identities_of_user on identities (user);

-- The public keys of authenticators, by which users sign in.
create table passkeys (
  _id text not null primary key,
  user text not null references users (_id) on delete cascade,
  credential text not null unique,
  public_key text not null,
  counter integer not null,
  host text not null,
  name text not null,
  transports text not null,
  backed_up integer not null,
  created integer not null,
  used integer
) strict, without rowid;
create index passkeys_of_user on passkeys (user);

-- What an authenticator is asked to sign, by its hash, once.
create table passkey_challenges (
  hash text not null primary key,
  purpose text not null,
  user text references users (_id) on delete cascade,
  origin text not null,
  expires integer not null
) strict, without rowid;
create index passkey_challenges_of_user on passkey_challenges (user);
create index passkey_challenges_by_end on passkey_challenges (expires);

-- Workspaces

create table workspaces (
  _id text not null primary key,
  name text not null,
  logo text,
  labels text not null,
  created integer not null,
  updated integer not null
) strict, without rowid;
create index workspaces_by_time on workspaces (created, _id);

create table members (
  workspace text not null references workspaces (_id) on delete cascade,
  user text not null references users (_id) on delete cascade,
  roles text not null,
  created integer not null,
  primary key (workspace, user)
) strict, without rowid;
create index members_by_user on members (user);

-- `granted_roles` are the roles that an admin of the tenant gave.
create table invites (
  _id text not null primary key,
  workspace text not null references workspaces (_id) on delete cascade,
  email_key text not null,
  email text not null,
  name text,
  roles text not null,
  granted_roles text not null default '[]',
  created integer not null,
  unique (workspace, email_key)
) strict, without rowid;
create index invites_by_email on invites (email_key);

-- Blueprints

-- Entities have the `code` of their blueprint in the place of its key, which takes less room. `form` counts the changes that
-- altered entities, and `indexing` those of indexes, so that every writer notices them. `history_number` is the history of a
-- blueprint, and `history_fields` has the numbers of its fields there: they outlast a rename, and no other field gets them.
create table blueprints (
  key text not null primary key,
  _id text not null unique,
  code text not null default '',
  name text not null,
  version integer not null,
  form integer not null default 0,
  indexing integer not null default 0,
  history_number integer,
  created integer not null,
  updated integer not null,
  description text not null,
  definition text not null,
  history_fields text
) strict, without rowid;

-- A field's number stands for it in the index: rows stay small, and a field can be renamed without touching them.
create table fields (
  number integer not null primary key,
  blueprint text not null references blueprints (key) on delete cascade,
  key text not null,
  index_keys integer not null default 0,
  unique (blueprint, key)
) strict;

-- The indexes of fields. Most are built when a query first needs them. `parts` has what an index of several fields leads by.
create table field_indexes (
  blueprint text not null references blueprints (key) on delete cascade,
  number integer not null,
  parts text,
  state text not null,
  reason text not null,
  since integer not null,
  used integer not null,
  done integer not null,
  upto integer not null,
  primary key (blueprint, number)
) strict, without rowid;

-- What the entities of a blueprint become before a change of it is in force, and how far that is.
create table alterations (
  blueprint text not null primary key references blueprints (key) on delete cascade,
  form integer not null,
  state text not null,
  created integer not null,
  entity integer not null,
  upto integer not null,
  done integer not null,
  total integer not null,
  problem text,
  since integer not null,
  change text not null
) strict, without rowid;

-- Entities

-- The `_id` is null where it is the identifier. There is no foreign key to the blueprint: every write of entities checks the
-- version of their blueprint. `altered` is the document from the form `form` of the blueprint on, which is -1 where that is still
-- to be made.
-- `version_row` is the latest row of entity_versions, so that a change reads no version.
-- Small columns come first: those behind a long document are found only by reading all of it.
create table entities (
  seq integer not null primary key,
  version integer not null,
  created integer not null,
  updated integer not null,
  form integer,
  history integer,
  version_number integer,
  version_row integer,
  _id text unique,
  blueprint text not null,
  identifier text not null,
  user text,
  workspace text,
  creator text,
  shown text not null,
  keys text not null,
  altered text,
  unique (blueprint, identifier)
) strict;
create index entities_by_time on entities (blueprint, created, seq);
create index entities_of_user on entities (blueprint, user, created, seq);
create index entities_of_workspace on entities (blueprint, workspace, created, seq) where workspace is not null;
create index entities_to_alter on entities (blueprint, seq) where form = -1;
create index entities_by_change on entities (blueprint, updated, created, seq);

create table entity_index (
  field integer not null,
  path text not null,
  value text not null,
  created integer not null,
  entity integer not null,
  primary key (field, path, value, created, entity)
) strict, without rowid;

-- What blueprints with a history keep of earlier states of their entities. Each row names the one before it of its entity.
create table entity_versions (
  seq integer not null primary key,
  history integer not null,
  number integer not null,
  at integer not null,
  since integer not null,
  action integer not null,
  previous integer,
  identifier text not null,
  author text,
  former text
) strict;
create index entity_removals on entity_versions (history, identifier, seq, at) where action = 2;

-- Of which blueprints the changes are kept: all after number `since`, for as long as somebody listened lately.
create table change_logs (
  blueprint text not null primary key references blueprints (key) on delete cascade,
  since integer not null,
  until integer not null
) strict, without rowid;

-- Numbers grow with each change of a tenant by as much as it takes room: so they tell how much is kept.
create table entity_changes (
  number integer not null primary key,
  blueprint text not null references change_logs (blueprint) on delete cascade,
  made integer not null,
  shown_before text,
  keys_before text,
  shown text,
  keys text
) strict;
create index changes_of_blueprint on entity_changes (blueprint, number);

-- The numbers of entities that changed, for blueprints of which something is kept in memory: counts, and texts that patterns
-- are compared with. Without rows in the first table, writers write nothing to the second.
create table tracked_blueprints (
  blueprint text not null primary key references blueprints (key) on delete cascade,
  started integer not null,
  until integer not null
) strict, without rowid;

create table tracked_changes (
  blueprint text not null,
  number integer not null,
  entities text not null,
  primary key (blueprint, number)
) strict, without rowid;

create table imports (
  _id text not null primary key,
  blueprint text not null,
  busy integer not null
) strict, without rowid;

create table import_undo (
  import text not null,
  entity integer not null,
  before text,
  primary key (import, entity)
) strict, without rowid;

-- Search

-- Which words each entity has, of those blueprints that were ever searched. The words are made by the application.
create virtual table search_words using fts5(words, content='', contentless_delete=1, tokenize='ascii');

create table search_progress (
  blueprint text not null primary key references blueprints (key) on delete cascade,
  done integer not null,
  upto integer not null
) strict, without rowid;

-- The words of each chunk of knowledge, with its store's number. They are made by the application.
create virtual table search_chunks using fts5(
  store unindexed, words, content='', contentless_delete=1, contentless_unindexed=1, tokenize='ascii'
);

create table search_files (
  file text not null primary key
) strict, without rowid;

-- Content

create table configurations (
  _id text not null primary key,
  key text not null unique,
  public integer not null,
  kind text not null,
  description text not null,
  version integer not null default 1,
  created integer not null,
  updated integer not null,
  metadata text not null
) strict, without rowid;

create table components (
  _id text not null primary key,
  identifier text not null unique,
  path text not null,
  builds integer not null,
  size integer not null,
  version integer not null,
  created integer not null,
  updated integer not null,
  component_name text not null,
  description text not null,
  required_props text not null,
  content text not null
) strict, without rowid;

create table builds (
  component text not null references components (_id) on delete cascade,
  path text not null,
  number integer not null,
  js text not null,
  css text not null,
  primary key (component, path)
) strict, without rowid;
create index builds_by_path on builds (path);

create table blocks (
  _id text not null primary key,
  name text not null,
  content_type text not null check (content_type in ('content', 'html')),
  size integer not null,
  version integer not null,
  created integer not null,
  updated integer not null,
  rules text,
  description text not null,
  content text not null,
  shown text
) strict, without rowid;
create index blocks_by_time on blocks (created, _id);
create index blocks_by_name on blocks (name, _id);

-- A content is stored once, however many files have it. `claimed` is when an upload last needed it, and one that is being
-- removed is not used again before it is gone. `thumbnails` are the names and bytes of thumbnails beside it, as JSON.
create table file_contents (
  sha256 text not null primary key,
  size integer not null,
  claimed integer not null,
  removing integer not null,
  thumbnail_bytes integer not null default 0,
  thumbnails text
) strict, without rowid;

-- Files that no entity names are removed, except those that are kept. `unused` is since when no entity names a file.
create table files (
  _id text not null primary key,
  name text not null,
  type text not null,
  size integer not null,
  width integer,
  height integer,
  sha256 text not null references file_contents (sha256),
  owner text not null,
  workspace text,
  created integer not null,
  keep integer not null default 1,
  unused integer
) strict, without rowid;
create index files_by_time on files (created, _id);
create index files_by_owner on files (owner, created, _id);
create index files_by_content on files (sha256);

-- A deployment is one row: the contents of its files are in file_contents. The one with the highest activation is active. The
-- manifest is last, so that lists do not read its pages.
create table site_deployments (
  _id text not null primary key,
  activation integer not null,
  spa integer not null,
  files integer not null,
  bytes integer not null,
  deployed_by text not null,
  created integer not null,
  manifest text not null
) strict, without rowid;

-- Events and jobs

-- What has happened, in the order in which it was committed. `cause` is the integration of whose run an event comes, `depth` is
-- how many runs led to it, and `trace` is the trace (W3C traceparent) of the request that caused it.
create table events (
  seq integer not null primary key,
  created integer not null,
  depth integer not null default 0,
  _id text not null unique,
  source text not null,
  kind text not null,
  event_name text not null,
  user text,
  workspace text,
  cause text,
  trace text,
  description text not null,
  metadata text not null
) strict;
create index events_by_time on events (created, seq);
create index events_by_kind on events (kind, created, seq);
create index events_by_name on events (event_name, created, seq);
create index events_of_user on events (user, created, seq) where user is not null;

-- How far somebody has read the events.
create table cursors (
  name text not null primary key,
  seq integer not null
) strict, without rowid;

-- What is to be done outside of requests. Only the first that waits in a lane is ever due. Jobs that were never tried, and those
-- whose last attempt failed, have indexes of their own: each is found without the other.
create table jobs (
  seq integer not null primary key,
  attempts integer not null,
  due integer,
  created integer not null,
  finished integer,
  _id text not null unique,
  kind text not null,
  lane text not null,
  state text not null,
  trace text,
  payload text not null,
  outcome text
) strict;
create index jobs_by_lane on jobs (lane, state, seq);
create index jobs_by_kind on jobs (kind, state, finished);
create index jobs_fresh on jobs (due, seq) where due is not null and attempts = 0;
create index jobs_retried on jobs (due, seq) where due is not null and attempts > 0;

-- Which process does a kind of work, one at a time.
create table leases (
  name text not null primary key,
  holder text,
  token integer not null,
  expires integer not null
) strict, without rowid;

-- The time for all who share this database, in ms.
create view clock as select cast(unixepoch('subsec') * 1000 as integer) as now;

-- What was written to people.
create table mails (
  _id text not null primary key,
  recipient text not null,
  recipient_key text not null,
  template text not null,
  user text,
  state text not null,
  subject text,
  error text,
  created integer not null,
  sent integer,
  data text not null,
  text text,
  html text
) strict;
create index mails_by_time on mails (created, _id);
create index mails_to on mails (recipient_key, sent);

-- Plugins, lambdas and integrations

-- Other servers that take part. Their secrets are in `sealed`.
create table plugins (
  _id text not null primary key,
  name text not null unique,
  description text not null,
  manifest_url text,
  api_path text unique,
  proxy_url text,
  active integer not null,
  account text unique,
  former_until integer,
  last_error text,
  failed integer,
  succeeded integer,
  created integer not null,
  updated integer not null,
  subscribed_events text not null
) strict, without rowid;

-- What plugins were told, and what they answered.
create table deliveries (
  _id text not null primary key,
  plugin text not null,
  event text not null,
  source text not null,
  kind text not null,
  event_name text not null,
  hook_url text not null,
  state text not null,
  attempts integer not null,
  status integer,
  duration integer,
  error text,
  due integer,
  created integer not null,
  updated integer not null,
  answer text not null
) strict;
create index deliveries_of_plugin on deliveries (plugin, created, _id);
create index deliveries_by_state on deliveries (plugin, state, created, _id);
create index deliveries_by_time on deliveries (updated);

create table lambdas (
  _id text not null primary key,
  name text not null,
  description text not null,
  version integer not null,
  revision integer not null,
  size integer not null,
  timeout_ms integer not null,
  memory_mb integer not null,
  service_role text,
  created integer not null,
  updated integer not null,
  env text not null
) strict, without rowid;

create table lambda_versions (
  lambda text not null references lambdas (_id) on delete cascade,
  version integer not null,
  user text,
  created integer not null,
  code text not null,
  js text not null,
  primary key (lambda, version)
) strict, without rowid;

create table lambda_runs (
  _id text not null primary key,
  lambda text not null,
  version integer not null,
  cause text not null,
  status integer not null,
  error text,
  started integer not null,
  duration integer not null,
  user text,
  logs text not null
) strict;
create index lambda_runs_by_time on lambda_runs (lambda, started, _id);
create index lambda_runs_by_age on lambda_runs (started);

-- Other servers, and how they are called. Their secrets are in `sealed`.
create table connections (
  _id text not null primary key,
  name text not null,
  kind text not null,
  labels text not null,
  version integer not null,
  created integer not null,
  updated integer not null,
  metadata text not null
) strict, without rowid;

-- What is done when a request comes, an event happens or a time is due.
create table integrations (
  _id text not null primary key,
  name text,
  active integer not null,
  guest integer not null,
  trigger_kind text not null,
  target_kind text not null,
  source text,
  roles text not null,
  workspace_roles text not null,
  plugin text,
  user text not null,
  since integer not null,
  version integer not null,
  created integer not null,
  updated integer not null,
  "trigger" text not null,
  target text not null
) strict, without rowid;
create index integrations_by_trigger on integrations (trigger_kind, active, since);

-- Payments

-- What can be subscribed to.
create table plans (
  _id text not null primary key,
  name text not null,
  description text not null,
  monthly_price integer,
  yearly_price integer,
  currency text not null,
  dynamic integer not null,
  is_active integer not null,
  features text not null,
  sort_order integer not null,
  created integer not null,
  updated integer not null,
  limits text not null,
  metadata text not null,
  external_ids text not null
) strict, without rowid;

-- What takes something off a price.
create table coupons (
  _id text not null primary key,
  code text not null,
  code_key text not null unique,
  discount text not null,
  currency text,
  max_redemptions integer,
  current_redemptions integer not null,
  valid_from integer,
  valid_until integer,
  benefit text,
  applicable_plan_ids text not null,
  is_active integer not null,
  created integer not null,
  updated integer not null
) strict, without rowid;

-- Who pays for which plan: one at a time is in force. `drift` is in what a subscription differs from what its provider has, and
-- `conflict` the other subscription of the same payer. An event that names only a checkout is known by it.
create table subscriptions (
  _id text not null primary key,
  plan_id text not null,
  billable_entity_type text not null,
  billable_entity_id text not null,
  status text not null,
  billing_cycle text not null,
  currency text not null,
  base_price integer,
  dynamic_amount integer,
  coupon_id text,
  coupon_code text,
  discount text,
  coupon_benefit_ends_at integer,
  current_period_start integer,
  current_period_end integer,
  period_anchor integer,
  trial_ends_at integer,
  past_due_since integer,
  pause text,
  cancel_at_period_end integer not null,
  cancel_requested integer,
  ended_by text,
  conflict text,
  drift text,
  provider_kind text,
  provider_source_id text,
  external_subscription_id text,
  external_checkout_id text,
  checkout_until integer,
  checkout_amount integer,
  failed_checkouts integer not null,
  last_event_at integer,
  created integer not null,
  updated integer not null,
  metadata text not null
) strict;
create unique index subscriptions_in_force on subscriptions (billable_entity_type, billable_entity_id)
  where status in ('active', 'trialing');
create unique index subscriptions_at_provider on subscriptions (provider_kind, external_subscription_id)
  where external_subscription_id is not null;
create index subscriptions_of_entity on subscriptions (billable_entity_type, billable_entity_id, created, _id);
create index subscriptions_of_plan on subscriptions (plan_id, created, _id);
create index subscriptions_by_status on subscriptions (status, created, _id);
create index subscriptions_by_time on subscriptions (created, _id);
create index subscriptions_of_checkout on subscriptions (external_checkout_id) where external_checkout_id is not null;

-- Which subscription has redeemed which coupon.
create table redemptions (
  subscription text not null,
  coupon text not null,
  created integer not null,
  primary key (subscription, coupon)
) strict, without rowid;

-- What was or is to be paid, as providers tell it. `refund_offered` is when admins were told to give a payment back.
create table invoices (
  _id text not null primary key,
  subscription_id text not null,
  billable_entity_type text not null,
  billable_entity_id text not null,
  amount integer not null,
  currency text not null,
  status text not null,
  provider_kind text not null,
  external_invoice_id text not null,
  invoice_url text,
  paid_at integer,
  period_start integer,
  period_end integer,
  created integer not null,
  updated integer not null,
  refund_offered integer,
  items text not null
) strict;
create unique index invoices_at_provider on invoices (provider_kind, external_invoice_id);
create index invoices_of_entity on invoices (billable_entity_type, billable_entity_id, created, _id);
create index invoices_of_subscription on invoices (subscription_id, created);
create index invoices_by_time on invoices (created, _id);

-- What providers have told, as it came. What they tell of subscriptions that are not known yet is parked until these turn up.
create table provider_events (
  _id text not null primary key,
  provider_kind text not null,
  event_id text not null,
  type text not null,
  source text,
  status text not null,
  occurred_at integer not null,
  attempts integer not null,
  next_at integer,
  subscription_id text,
  external_subscription_id text,
  outcome text,
  created integer not null,
  updated integer not null,
  body text not null
) strict;
create unique index provider_events_once on provider_events (provider_kind, event_id);
create index provider_events_due on provider_events (next_at) where next_at is not null;
create index provider_events_by_status on provider_events (status, created, _id);
create index provider_events_by_time on provider_events (created, _id);
create index provider_events_of_subscription on provider_events (subscription_id, created);
create index provider_events_parked on provider_events (external_subscription_id) where status = 'parked';

-- AI

create table threads (
  _id text not null primary key,
  integration text not null,
  title text,
  user text not null,
  workspace text,
  created integer not null,
  updated integer not null,
  summaries text not null
) strict, without rowid;
create index threads_by_time on threads (created, _id);
create index threads_of_user on threads (user, created, _id);
create index threads_of_workspace on threads (workspace, created, _id);

-- `original` is what a provider said beyond what clients know of a message, which it needs back.
create table thread_messages (
  thread text not null references threads (_id) on delete cascade,
  number integer not null,
  role text not null,
  name text,
  tool_call_id text,
  ours integer not null,
  incomplete integer not null,
  created integer not null,
  content text not null,
  tool_calls text,
  original text,
  primary key (thread, number)
) strict;

-- What tools answered in turns that wait for their clients.
create table tool_results (
  _id text not null primary key,
  content text not null,
  created integer not null
) strict, without rowid;
create index tool_results_by_age on tool_results (created);

-- `kind` is the work of the model: a completion or an embedding.
create table ai_usage (
  _id text not null primary key,
  created integer not null,
  kind text not null default 'completion',
  integration text,
  source text not null,
  model text not null,
  user text,
  workspace text,
  thread text,
  prompt_tokens integer not null,
  completion_tokens integer not null,
  cost integer not null,
  estimated integer not null,
  status text not null,
  duration_ms integer not null
) strict, without rowid;
create index ai_usage_by_time on ai_usage (created, _id);
create index ai_usage_of_user on ai_usage (user, created);
create index ai_usage_of_workspace on ai_usage (workspace, created);

-- What all completions of a day or a month took, for each of whom there may be a budget.
create table ai_spent (
  _id text not null primary key,
  tokens integer not null,
  cost integer not null
) strict, without rowid;

create table vector_stores (
  seq integer not null primary key,
  _id text not null unique,
  source text not null,
  integration text not null,
  scope text not null check (scope in ('thread', 'user', 'workspace', 'tenant')),
  subject text not null,
  model text,
  dimension integer,
  version integer not null,
  chunks integer not null,
  expiration_after_days real,
  created integer not null,
  expires integer,
  unique (integration, scope, subject, source)
) strict;
create index vector_stores_of_subject on vector_stores (subject);
create index vector_stores_by_end on vector_stores (expires);

create table knowledge_files (
  _id text not null primary key,
  store text not null,
  name text not null,
  user text not null,
  chunks integer not null,
  ready integer not null,
  created integer not null,
  metadata text not null
) strict, without rowid;
create index knowledge_files_of_store on knowledge_files (store, ready, _id);
create index knowledge_files_unready on knowledge_files (ready, created);

create table knowledge_chunks (
  number integer not null primary key,
  file text not null,
  position integer not null,
  text text not null,
  vector blob,
  unique (file, position)
) strict;

-- Common

-- Counters by topic, by which caches notice changes and numbers are assigned.
create table versions (
  topic text not null primary key,
  version integer not null
) strict, without rowid;

-- Encrypted values. `key` is the number of the key that they are encrypted by.
create table sealed (
  purpose text not null,
  owner text not null,
  name text not null,
  key integer not null,
  text text not null,
  updated integer not null,
  primary key (purpose, owner, name)
) strict, without rowid;
create index sealed_by_key on sealed (key);

-- `created` is where the thing that a request created can be read, to answer it after a crash.
create table idempotency_keys (
  name text not null primary key,
  attempt text not null,
  fingerprint text,
  created text,
  busy integer not null,
  expires integer not null,
  answer text
) strict;
create index idempotency_keys_by_end on idempotency_keys (expires);

-- What a tenant has used on a day (UTC), in the unit of each kind.
create table daily_use (
  day text not null,
  kind text not null,
  amount integer not null,
  primary key (day, kind)
) strict, without rowid;

-- The highest part of a quota, in percent, whose use was told by an event.
create table quota_levels (
  kind text not null primary key,
  period text not null,
  level integer not null
) strict, without rowid;

-- Transactions merge the segments of words in small parts.
insert into search_words (search_words, rank) values ('automerge', 0);
insert into search_chunks (search_chunks, rank) values ('automerge', 0);
