import type { Page } from './section'

type BlueprintAction = {
  toLabel(name: string): string
  /** Follows the address of the blueprint's list. */
  path: string
  hash?: string
  keywords: string
  roles?: readonly string[]
}

const DESIGNERS = ['admin']

/** What can be done with a blueprint, besides opening its list and creating an entity. */
export const BLUEPRINT_ACTIONS: readonly BlueprintAction[] = [
  { toLabel: (name) => `Import into ${name}`, path: '/all/import', keywords: 'upload csv excel spreadsheet ndjson' },
  { toLabel: (name) => `Export ${name}`, path: '', hash: 'export', keywords: 'download csv excel ndjson json' },
  { toLabel: (name) => `Chart of ${name}`, path: '/all/chart', keywords: 'graph diagram report dashboard' },
  {
    toLabel: (name) => `Fields of ${name}`,
    ...{ path: '/all/design', keywords: 'columns schema types blueprint design', roles: DESIGNERS },
  },
  {
    toLabel: (name) => `Rules of ${name}`,
    ...{ path: '/all/design/rules', keywords: 'permissions access roles guests', roles: DESIGNERS },
  },
  {
    toLabel: (name) => `Settings of ${name}`,
    ...{ path: '/all/design/settings', keywords: 'history versions events delete', roles: DESIGNERS },
  },
  { toLabel: (name) => `API of ${name}`, path: '/all/api', keywords: 'rest curl code client endpoints' },
]

/** The parts of the own account. */
export const ACCOUNT_PAGES: readonly Page[] = [
  { label: 'Profile', path: '/account', keywords: 'me name e-mail address' },
  {
    label: 'Sign-in',
    ...{ path: '/account', search: { show: 'sign-in' } },
    keywords: 'password passkey second factor 2fa totp authenticator recovery codes',
  },
  { label: 'Sessions', path: '/account', search: { show: 'sessions' }, keywords: 'devices sign out log out' },
  { label: 'API tokens', path: '/account', search: { show: 'tokens' }, keywords: 'key secret x-api-key bearer' },
  { label: 'Workspaces', path: '/account', search: { show: 'workspaces' }, keywords: 'teams invitations' },
]

/** Pages outside of this one, which open in another tab. */
export const DOCUMENTS: readonly { label: string; href: string; keywords: string; roles?: readonly string[] }[] = [
  { label: 'API reference', href: '/openapi', keywords: 'documentation docs help rest openapi swagger' },
  { label: 'OpenAPI description', href: '/openapi/json', keywords: 'documentation docs schema generator client json' },
  {
    label: 'Operator page',
    ...{ href: '/admin/operator/tenants', roles: ['admin'] },
    keywords: 'tenants backup restore clone copy certificates health log installation',
  },
]
