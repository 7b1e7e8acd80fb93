create table threads (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  integration text collate "C" not null,
  title text collate "C",
  summaries text collate "C" not null,
  "user" text collate "C" not null,
  workspace text collate "C",
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id)
);

create index threads_by_time on threads (tenant_id, created, _id);
create index threads_of_user on threads (tenant_id, "user", created, _id);
create index threads_of_workspace on threads (tenant_id, workspace, created, _id);

create table thread_messages (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  thread text collate "C" not null,
  number bigint not null,
  role text collate "C" not null,
  content text collate "C" not null,
  name text collate "C",
  tool_calls text collate "C",
  tool_call_id text collate "C",
  ours bigint not null,
  incomplete bigint not null,
  created bigint not null,
  primary key (tenant_id, thread, number),
  foreign key (tenant_id, thread) references threads (tenant_id, _id) on delete cascade
);

create table tool_results (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  content text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, _id)
);

create index tool_results_by_age on tool_results (tenant_id, created);

create table ai_usage (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  created bigint not null,
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
