const id = '019a7c7e-5d4b-7f3e-9a53-2f6d1c0b8e11'
const otherId = '019a7c80-11c2-7a40-8d55-6f0c9e3b7a02'
const created = '2026-01-31T12:00:00.000Z'
const times = { created, updated: created }
const websiteMetadata = { page: 'home' }

const workspace = { _id: otherId, name: 'Analytical Engines', roles: ['admin'], labels: ['customer'] }
const user = {
  ...{ _id: id, username: 'ada', email: 'ada@example.com', name: 'Ada', firstName: 'Ada', lastName: 'Lovelace' },
  ...{ fullName: 'Ada Lovelace', profileImage: null, birthDate: null, phone: null, roles: ['user'] },
  ...{ metadata: {}, workspace, created },
}
const fields = [
  { key: 'title', type: 'string', required: true },
  { key: 'done', type: 'boolean', default: false },
]
const permissions = [{ operation: 'read', scope: 'user', roleBased: ['user'] }]
const blueprint = { key: 'todos', name: 'To-dos', fields, permissions }
const definitionFiles = { 'lambdas/one.ts': 'export default () => 1' }
const properties = { title: 'Write the notes', done: false }
const entity = { _id: id, identifier: id, ...times, user: id, workspace: null, metadata: properties, ...properties }
const price = { name: 'Pro', monthlyPrice: 19.9, yearlyPrice: 199, currency: 'EUR', features: ['Ten workspaces'] }
const plan = {
  ...{ _id: id, description: '', dynamic: false, isActive: true, sortOrder: 0, limits: { todos: 100 }, metadata: {} },
  ...{ ...price, ...times },
}
const coupon = { code: 'SPRING', discountType: 'percentage', discountValue: 20, maxRedemptions: 100 }
const subscription = {
  ...{ _id: id, planId: otherId, billableEntityType: 'user', billableEntityId: id, status: 'active' },
  ...{ billingCycle: 'monthly', currency: 'EUR', basePrice: 19.9, finalPrice: 19.9, dynamicAmount: null },
  ...{ couponId: null, couponCode: null, couponBenefitEndsAt: null, currentPeriodStart: created },
  ...{ currentPeriodEnd: '2026-02-28T12:00:00.000Z', trialEndsAt: null, cancelAtPeriodEnd: false },
  ...{ cancelRequested: null, providerKind: 'stripe', providerSourceId: otherId, externalSubscriptionId: 'sub_1' },
  ...{ pause: null, metadata: {}, ...times },
}
const event = {
  source: 'shop',
  kind: 'order',
  eventName: 'order-placed',
  description: 'An order',
  metadata: { total: 5 },
}
const code = 'export default async (request, atoll) => ({ hello: request.query.name })'
const lambda = { name: 'Greeting', code, timeoutMs: 1000 }
const target = { kind: 'lambda', lambdaId: id }
const integration = { name: 'Greet', trigger: { kind: 'webhook' }, target }
const source = { name: 'Model server', kind: 'openai', metadata: { apiUrl: 'https://api.openai.com/v1' } }
const agent = { name: 'Helper', description: 'Answers questions', systemPrompt: 'Answer briefly.' }
const messages = [{ role: 'user', content: 'What is left to do?' }]
const credential = { id: 'bXkta2V5', rawId: 'bXkta2V5', type: 'public-key', clientExtensionResults: {} }
const invite = { email: 'grace@example.com', roles: ['member'] }
const component = {
  ...{ identifier: 'hello', componentName: 'Hello' },
  content: 'export default ({ name }) => React.createElement("p", null, name)',
}
const block = { name: 'footer', content: '<p>Imprint</p>', contentType: 'html' }
const plugin = { name: 'Mailer', subscribedEvents: [{ kind: 'order', hookUrl: 'https://mailer.example.com/hook' }] }
const secret = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='

/** Examples of all request bodies and of the most frequent responses, by the names of their schemas. */
export const examples: Record<string, unknown> = {
  SignIn: { username: 'ada', password: 'correct horse battery', authType: 'oauth' },
  SignUp: { username: 'ada', password: 'correct horse battery', email: 'ada@example.com', authType: 'oauth' },
  SetUp: { username: 'ada', password: 'correct horse battery', token: 'gLdaA1hf297As62…' },
  LinkSignIn: { token: 'B5SdKpv8bN-MT3bj…' },
  EmailCode: { request: 'mQ0dYx7b4Vw…', code: '40717386' },
  EmailLink: { token: 'h2vP0sN6c1E…' },
  RequestedEmailSignIn: { request: 'mQ0dYx7b4Vw…' },
  SignInMethods: { email: true, providers: ['google'] },
  SignedIn: { payload: { token: 'eyJhbGciOi…', refreshToken: 'rt_…', expiresIn: 900, user, workspace } },
  RefreshRequest: { refreshToken: 'rt_…' },
  RefreshedTokens: { payload: { token: 'eyJhbGciOi…', refreshToken: 'rt_…', expiresIn: 900, user, workspace } },
  User: user,
  Me: { ...user, isPrivileged: false, emailVerified: true, pendingEmail: null },
  ProfileChange: { firstName: 'Ada', phone: '+44 20 7946 0000' },
  NewUser: { username: 'grace', password: 'correct horse battery', roles: ['user'] },
  UserChange: { roles: ['user', 'editor'] },
  NewApiToken: { nickname: 'Nightly report', scopes: ['entities:read'] },
  EmailVerification: { email: 'ada@example.com', code: '40718236' },
  MailTemplateChange: { subject: 'Welcome to {{product}}' },
  NewTenant: { id: 'acme', hosts: ['acme.example.com'] },
  TenantHosts: { hosts: ['acme.example.com'] },
  DefaultTenantChoice: { mode: 'everywhere', tenant: 'acme' },
  TenantMove: { to: 'postgres' },
  NewOperatorToken: { name: 'nightly', scopes: ['read', 'backups'] },
  TenantClone: { as: 'acme-copy' },
  TenantRestore: { backup: '2030-01-31T12-00-00.000Z', as: 'acme-restored' },
  QuotaChange: { entities: 100_000, storage: 2_147_483_648, mails: null },
  ChosenRateLimits: { guests: { reads: 5_000 } },
  SupportRequest: { reason: 'Ticket 42: an import fails' },
  ForgottenPassword: { email: 'ada@example.com' },
  PasswordReset: { email: 'ada@example.com', code: '40718236', password: 'correct horse battery' },
  RevertToken: { token: 'k3Vt…' },
  TotpCode: { code: '492039' },
  Proof: { currentPassword: 'correct horse battery' },
  NewPasskey: {
    name: 'Laptop',
    credential: { ...credential, response: { clientDataJSON: 'eyJ0eXBlIjoi', attestationObject: 'o2NmbXQ' } },
  },
  PasskeyName: { name: 'Laptop' },
  PasskeySignInStart: {},
  PasskeySignIn: {
    authType: 'oauth',
    credential: {
      ...credential,
      response: { clientDataJSON: 'eyJ0eXBlIjoi', authenticatorData: 'SZYN5YgO', signature: 'MEUCIQ' },
    },
  },
  RedirectToken: { rt: 'k3Vt…', authType: 'oauth' },
  NewIdentity: { provider: 'google', returnUrl: 'https://app.example.com/profile' },
  NewWorkspace: { name: 'Analytical Engines' },
  Workspace: {
    ...{ _id: otherId, name: 'Analytical Engines', logo: null, labels: ['customer'] },
    ...{ isPrivilegedUser: true, ...times },
  },
  WorkspaceChange: { name: 'Analytical Engines Ltd', invites: [invite] },
  NewMember: { userId: id, roles: ['member'] },
  MemberChange: { roles: ['admin'] },
  NewInvite: invite,
  InvitationAnswer: { workspace: otherId, kind: 'accept' },
  NewBlueprint: blueprint,
  BlueprintChange: { name: 'To-dos', fields },
  Blueprint: { _id: id, description: '', ...blueprint, ...times },
  Entity: entity,
  EntityInput: properties,
  EntityBatch: {
    operations: [
      { op: 'create', data: properties },
      { op: 'delete', identifier: id },
    ],
  },
  Count: { count: 42 },
  NewComponent: component,
  ComponentChange: { content: component.content },
  ComponentBulk: { components: [component] },
  NewBlock: block,
  BlockChange: { content: block.content },
  Block: { _id: id, description: '', ...block, ...times },
  FileChange: { keep: true },
  DefinitionDiff: { files: definitionFiles, prune: true },
  DefinitionPush: { files: definitionFiles },
  NewConfiguration: { key: 'theme', public: true, metadata: websiteMetadata },
  ConfigurationChange: { metadata: websiteMetadata },
  Configuration: {
    _id: id,
    key: 'theme',
    public: true,
    kind: '',
    description: '',
    metadata: websiteMetadata,
    ...times,
  },
  AppConfigurationChange: { metadata: { websiteUrls: ['https://app.example.com'] } },
  NewEvent: event,
  Event: { _id: id, ...event, user: id, workspace: null, created },
  NewLambda: lambda,
  LambdaChange: { code },
  LambdaRollback: { version: 1 },
  LambdaInput: { query: { name: 'Ada' } },
  NewIntegrationSource: { ...source, authentication: { token: 'sk-…' } },
  IntegrationSourceChange: { name: 'Model server' },
  IntegrationSourceDraft: { kind: source.kind, metadata: source.metadata, authentication: { token: 'sk-…' } },
  NewIntegration: integration,
  IntegrationChange: { active: false },
  NewPlan: price,
  PlanChange: { description: 'For teams' },
  Plan: plan,
  NewCoupon: coupon,
  CouponChange: { isActive: false },
  CouponCode: { code: 'SPRING', planId: id },
  NewSubscription: { planId: otherId, billingCycle: 'monthly' },
  PricePreviewRequest: { billingCycle: 'monthly', couponCode: 'SPRING', payments: 12 },
  Subscription: subscription,
  DynamicAmount: { amount: 49.5 },
  Cancellation: { atPeriodEnd: false },
  CouponAttachment: { couponCode: 'SPRING' },
  NewCheckout: {
    ...{ planId: otherId, billingCycle: 'monthly' },
    ...{ successUrl: 'https://app.example.com/thanks', cancelUrl: 'https://app.example.com/plans' },
  },
  Checkout: { subscriptionId: id, checkoutUrl: 'https://checkout.stripe.com/c/pay/cs_1', clientToken: null },
  PaymentsConfigurationChange: { metadata: { defaultCurrency: 'EUR' } },
  NewPlugin: plugin,
  PluginChange: { active: false },
  PluginSecretRotation: { secret },
  NewThread: { integration: id, title: 'Plans for the week' },
  NewAgent: agent,
  AgentChange: { systemPrompt: 'You know our pumps.', temperature: null },
  KnowledgeSearch: { question: 'How often does the pump need oil?' },
  AgentChatRequest: { messages },
  CompletionRequest: { messages },
  ChatCompletionRequest: { model: 'Librarian', messages },
  EmbeddingRequest: { model: 'Librarian', input: 'What is a novel?' },
  DraftRequest: { messages: [{ role: 'user', content: 'A shop for books' }], create: false },
  BlueprintDraftRequest: { prompt: 'A shop for books' },
  NewVectorStore: { integrationId: id, scope: 'user', subjectId: otherId },
  VectorStoreUpload: {
    vectorStoreId: id,
    content: '# Opening hours\n\nMonday to Friday, 9 to 17',
    fileName: 'hours.md',
  },
  VectorStoreClear: { vectorStoreId: id },
  Problem: { code: 'BLUEPRINT_NOT_FOUND', message: 'There is no such blueprint.' },
  Success: { success: true },
}
