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

create index coupons_by_time on coupons (tenant_id, created, _id);

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
  items text collate "C" not null,
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id)
);

create unique index invoices_at_provider on invoices (tenant_id, provider_kind, external_invoice_id);

create index invoices_of_entity on invoices (tenant_id, billable_entity_type, billable_entity_id, created, _id);

create index invoices_of_subscription on invoices (tenant_id, subscription_id, created);

create index invoices_by_time on invoices (tenant_id, created, _id);

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
  limits text collate "C" not null,
  metadata text collate "C" not null,
  external_ids text collate "C" not null,
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id)
);

create index plans_by_order on plans (tenant_id, is_active, sort_order, monthly_price);

create index plans_by_time on plans (tenant_id, created, _id);

create table provider_events (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  provider_kind text collate "C" not null,
  event_id text collate "C" not null,
  type text collate "C" not null,
  source text collate "C",
  body text collate "C" not null,
  status text collate "C" not null,
  occurred_at bigint not null,
  attempts bigint not null,
  next_at bigint,
  subscription_id text collate "C",
  external_subscription_id text collate "C",
  outcome text collate "C",
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id)
);

create unique index provider_events_once on provider_events (tenant_id, provider_kind, event_id);

create index provider_events_due on provider_events (tenant_id, next_at) where next_at is not null;

create index provider_events_by_status on provider_events (tenant_id, status, created, _id);

create index provider_events_by_time on provider_events (tenant_id, created, _id);

create index provider_events_of_subscription on provider_events (tenant_id, subscription_id, created);

create table redemptions (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  subscription text collate "C" not null,
  coupon text collate "C" not null,
  created bigint not null,
  primary key (tenant_id, subscription, coupon)
);

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
  trial_ends_at bigint,
  past_due_since bigint,
  cancel_at_period_end bigint not null,
  cancel_requested bigint,
  provider_kind text collate "C",
  provider_source_id text collate "C",
  external_subscription_id text collate "C",
  external_checkout_id text collate "C",
  checkout_until bigint,
  checkout_amount bigint,
  failed_checkouts bigint not null,
  last_event_at bigint,
  metadata text collate "C" not null,
  created bigint not null,
  updated bigint not null,
  primary key (tenant_id, _id)
);

create unique index subscriptions_in_force on subscriptions (tenant_id, billable_entity_type, billable_entity_id) where status in ('active', 'trialing');

create unique index subscriptions_at_provider on subscriptions (tenant_id, provider_kind, external_subscription_id) where external_subscription_id is not null;

create index subscriptions_of_entity on subscriptions (tenant_id, billable_entity_type, billable_entity_id, created, _id);

create index subscriptions_of_plan on subscriptions (tenant_id, plan_id, created, _id);

create index subscriptions_by_status on subscriptions (tenant_id, status, created, _id);

create index subscriptions_by_time on subscriptions (tenant_id, created, _id);
