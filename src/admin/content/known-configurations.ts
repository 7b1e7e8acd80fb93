/** A configuration that the server reads: what it sets, and its keys. */
type KnownConfiguration = { description: string; keys: Record<string, string> }

/** The configurations that the server reads, with what their keys mean. */
export const knownConfigurations: Record<string, KnownConfiguration> = {
  'app-configuration': {
    description: 'Public settings: websites, and values that your pages need.',
    keys: {
      websiteUrls: 'addresses of websites whose pages may call the API, such as ["https://shop.example.com"]',
      timezone: 'the time zone of charts and sums, such as Europe/Lisbon; default: UTC',
      contentEditors: 'roles that may write blocks; without any, every signed-in user',
    },
  },
  'ai-configuration': {
    description: 'Prices and budgets of AI.',
    keys: {
      prices: 'by model, for a million tokens: {"gpt-4o-mini": {"prompt": 0.15, "completion": 0.6}}; * for all others',
      budgets:
        '[{"scope": "tenant, workspace or user", "period": "day or month", "unit": "tokens or cost", "limit": 100000}]',
    },
  },
  'auth-configuration': {
    description: 'Sign-up and sign-in providers.',
    keys: {
      allowSignup: 'whether people may create accounts themselves',
      allowEmailSignIn: 'whether people may sign in by a code or link in a mail',
      allowedReturnHosts: 'hosts to which a sign-in with a provider may return',
      providers: '{"github": {"clientId": "…", "clientSecret": "…"}}; the secret is never returned',
    },
  },
  'files-configuration': {
    description: 'Thumbnails of pictures.',
    keys: { thumbs: 'sizes that thumbnails may have, such as ["100x100", "1200x800"]' },
  },
  'workspace-configuration': {
    description: 'Who can create workspaces, and their labels.',
    keys: {
      isActive: 'whether there are workspaces',
      creationPrivilegedRoles: 'roles that may create workspaces',
      labels: 'labels that workspaces may have',
      allowNonLabeledWorkspaces: 'whether a workspace may have no label',
      restrictedLabels: 'labels that only admins give',
      restrictedRoles: 'roles in workspaces that only admins give',
      restricted: '"named" also restricts what rules name; default: "listed"',
    },
  },
  'payments-configuration': {
    description: 'The provider of payments, the currency and the days of grace.',
    keys: {
      isEnabled: 'whether people can pay',
      paymentSourceId: 'the connection that takes payments',
      defaultCurrency: 'such as "USD"',
      gracePeriodDays: 'days that a payment may be overdue',
      successUrl: 'where people come back after paying',
      cancelUrl: 'where people come back without paying',
      workspaceAdminsOnly: 'whether only admins of a workspace pay for it',
    },
  },
  'mail-templates': {
    description: 'The texts and links of mails.',
    keys: { '<kind>': '{"subject": "…", "text": "… {{token}}", "link": "https://app.example.com/reset#{{token}}"}' },
  },
}

/** Returns whether an admin may let everybody read a configuration. Who reads those of the server is fixed. */
export const mayBePublic = (key: string) => !(key in knownConfigurations)
