create table threads (
  _id text not null primary key,
  integration text not null,
  title text,
  summaries text not null,
  "user" text not null,
  workspace text,
  created integer not null,
  updated integer not null
) strict;

create index threads_by_time on threads (created, _id);
create index threads_of_user on threads ("user", created, _id);
create index threads_of_workspace on threads (workspace, created, _id);

create table thread_messages (
  thread text not null references threads (_id) on delete cascade,
  number integer not null,
  role text not null,
  content text not null,
  name text,
  tool_calls text,
  tool_call_id text,
  ours integer not null,
  incomplete integer not null,
  created integer not null,
  primary key (thread, number)
) strict;

-- What tools answered in turns that wait for their clients.
create table tool_results (
  _id text not null primary key,
  content text not null,
  created integer not null
) strict;

create index tool_results_by_age on tool_results (created);

create table ai_usage (
  _id text not null primary key,
  created integer not null,
  integration text,
  source text not null,
  model text not null,
  "user" text,
  workspace text,
  thread text,
  prompt_tokens integer not null,
  completion_tokens integer not null,
  cost integer not null,
  estimated integer not null,
  status text not null,
  duration_ms integer not null
) strict;

create index ai_usage_by_time on ai_usage (created, _id);
create index ai_usage_of_user on ai_usage ("user", created);
create index ai_usage_of_workspace on ai_usage (workspace, created);
