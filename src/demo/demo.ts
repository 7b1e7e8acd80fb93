import type { Actor } from '../accounts/actors'
import { issueApiToken } from '../accounts/api-tokens'
import { issueSigninToken } from '../accounts/links/signin-link'
import { findByLogin, registerUser } from '../accounts/users/users'
import * as blueprints from '../blueprints/blueprints'
import type { NewBlueprint, Rule } from '../blueprints/shapes'
import { generateToken } from '../core/crypto'
import * as entities from '../entities/entities'
import { nameProduct } from '../platform/settings/app-configuration'
import { createTenant, getTenant } from '../tenancy/tenants'
import { cities, companyNames, firstNames, industries, jobs, lastNames, stages } from './names'

const CONTACT_COUNT = 300

const SIGNED_IN_RULES: Rule[] = (['create', 'read', 'update', 'delete'] as const).map((operation) => ({
  operation,
  scope: operation === 'read' ? 'tenant' : 'user',
  roleBased: ['*'],
}))

const companies: NewBlueprint = {
  key: 'companies',
  name: 'Companies',
  description: 'The companies we do business with.',
  permissions: SIGNED_IN_RULES,
  fields: [
    { key: 'name', type: 'string', required: true, unique: true, max: 100 },
    { key: 'industry', type: 'string', enum: industries },
    { key: 'employees', type: 'integer', min: 1 },
    { key: 'website', type: 'url' },
    { key: 'address', type: 'object', schema: { type: 'object', properties: { city: { type: 'string' } } } },
    { key: 'founded', type: 'date' },
  ],
}

const contacts: NewBlueprint = {
  key: 'contacts',
  name: 'Contacts',
  description: 'The people at these companies.',
  permissions: SIGNED_IN_RULES,
  fields: [
    { key: 'name', type: 'string', required: true },
    { key: 'email', type: 'email', unique: true },
    { key: 'job', type: 'string' },
    { key: 'stage', type: 'string', enum: stages, default: 'lead' },
    { key: 'worth', type: 'decimal' },
    { key: 'lastCall', type: 'datetime' },
    { key: 'tags', type: 'string', multi: true },
    { key: 'company', type: 'relation', target: 'companies', onDelete: 'restrict' },
  ],
}

const pick = <T>(list: T[], n: number) => list[n % list.length]!
const toAsciiName = (text: string) =>
  text
    .normalize('NFD')
    .replace(/[^a-zA-Z]/g, '')
    .toLowerCase()

const makeCompany = (n: number) => {
  const name = `${pick(companyNames, n)} ${pick(['GmbH', 'Ltd', 'AS'], n >> 2)}`
  return {
    identifier: toAsciiName(pick(companyNames, n)),
    name,
    industry: pick(industries, n * 3),
    employees: 4 + ((n * 137) % 900),
    website: `https://${toAsciiName(pick(companyNames, n))}.example.com`,
    address: { city: pick(cities, n * 7), postalCode: `${10_000 + ((n * 7_919) % 80_000)}` },
    founded: `${1960 + ((n * 11) % 60)}-0${1 + (n % 9)}-1${n % 10}`,
  }
}

const makeContact = (n: number) => {
  const [first, last] = [pick(firstNames, n), pick(lastNames, (n * 5 + (n / 26) * 3) | 0)]
  return {
    name: `${first} ${last}`,
    email: `${toAsciiName(first)}.${toAsciiName(last)}${n}@example.com`,
    job: pick(jobs, n * 3),
    stage: pick(stages, (n * 7) >> 2),
    worth: `${(n * 7_919) % 90_000}.${10 + (n % 90)}`,
    lastCall: new Date(Date.UTC(2026, 0, 1) + n * 26_111_000).toISOString(),
    tags: [pick(['newsletter', 'fair', 'referral'], n), pick(['north', 'south'], n >> 1)],
    company: makeCompany(n).identifier,
  }
}

/** Returns the address that signs the administrator of the demo in, or undefined when there is none. It works once. */
export async function createDemoSigninLink(url: string): Promise<string | undefined> {
  const tenant = await getTenant('demo')
  const user = await findByLogin(tenant, 'admin')
  return user && `${url}/admin/link?tenant=demo#${await issueSigninToken(tenant, user._id)}`
}

/** Creates the tenant "demo" with sample data. Returns a text with its sign-in and three commands to try. */
export async function createDemo(port: number, invocation: string): Promise<string> {
  const tenant = await createTenant('demo', ['localhost', '127.0.0.1', '[::1]'])
  await nameProduct(tenant, 'Harbour CRM')
  const password = generateToken().slice(0, 12)
  const user = await registerUser(tenant, { username: 'admin', password, firstName: 'Ada', lastName: 'Admin' }, [
    'admin',
    'user',
  ])
  const { token } = await issueApiToken(tenant, user._id, { nickname: 'demo' })
  const actor: Actor = {
    user: user._id,
    roles: user.roles,
    privileged: true,
    workspace: null,
    via: 'api-key',
    scopes: [],
  }
  const ctx = { ...tenant, actor }
  const request = new Request('http://localhost/')
  for (const blueprint of [companies, contacts]) await blueprints.create(ctx, blueprint)
  for (let n = 0; n < companyNames.length; n++) await entities.create(ctx, 'companies', makeCompany(n), request)
  await Promise.all(
    Array.from({ length: CONTACT_COUNT }, (_, n) => entities.create(ctx, 'contacts', makeContact(n), request)),
  )

  const url = `http://localhost:${port}/api`
  const key = `-H 'x-api-key: ${token}'`
  return `
This is a demo: the tenant "demo" has ${companyNames.length} companies and ${CONTACT_COUNT} contacts.
Sign in as "admin" with the password "${password}". It is shown only now; "${invocation} user password demo admin" sets another.

Try these:

curl ${key} '${url}/me'
curl ${key} -g '${url}/blueprints/contacts/entities?stage=customer&worth[$gte]=50000&$sort=-worth&$limit=3'
curl ${key} -H 'content-type: application/json' -d '{"name":"Grace Hopper","company":"aurora"}' '${url}/blueprints/contacts/entities'
`
}
