// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createTempFolder, createTenantByCli, startAtoll } from '../fakes/cli'

setDefaultTimeout(240_000)

const root = process.cwd()
const TOOLS_FOLDER = join(import.meta.dir, 'node_modules')

/** A program of a front-end developer that uses the generated types. */
const CLIENT_PROGRAM = `import createClient from 'openapi-fetch'
import type { components, paths } from './api'

const [baseUrl = ''] = process.argv.slice(2)
const client = createClient<paths>({ baseUrl, headers: { tenant: 'acme' } })

function requireData<Data>({ data, error }: { data?: Data; error?: components['schemas']['Problem'] }): Data {
  if (error) throw new Error(\`\${error.code}: \${error.message}\`)
  if (data === undefined) throw new Error('Nothing was answered.')
  return data
}

async function signIn(username: string, password: string) {
  const { payload } = requireData(await client.POST('/api/signin', { body: { username, password, authType: 'oauth' } }))
  if (!('token' in payload)) throw new Error('No token was answered.')
  return { headers: { authorization: \`Bearer \${payload.token}\` }, username: payload.user.username }
}

const grace = { username: 'grace', password: 'correct horse battery' }
const signedUp = requireData(await client.POST('/api/signup', { body: { ...grace, authType: 'oauth' } }))
const user: components['schemas']['User'] = signedUp.payload.user
const { username } = await signIn(grace.username, grace.password)

const { headers } = await signIn('root', 'correct horse')
const blueprint = requireData(
  await client.POST('/api/blueprints', {
    headers,
    body: { key: 'todos', name: 'To-dos', fields: [{ key: 'title', type: 'string', required: true }] },
  }),
)
const params = { path: { key: blueprint.key } }
const creation = await client.POST('/api/blueprints/{key}/entities', {
  ...{ headers, params, body: { title: 'Write the notes' } },
})
const createdEntity = requireData(creation)
const version = creation.response.headers.get('etag') ?? ''
const change = (title: string) =>
  client.PUT('/api/blueprints/{key}/entities/{identifier}', {
    ...{ headers, body: { title } },
    params: { path: { ...params.path, identifier: createdEntity.identifier }, header: { 'If-Match': version } },
  })
const changed = requireData(await change('Write more notes'))
const stale = await change('Write no notes')
const list = requireData(
  await client.GET('/api/blueprints/{key}/entities', { headers, params: { ...params, query: { $limit: 10 } } }),
)
if (!Array.isArray(list)) throw new Error('A plan was answered.')
const users = requireData(await client.GET('/api/users', { headers, params: { query: { limit: 10, sort: '-created' } } }))
const { error } = await client.POST('/api/signin', { body: { username: 'grace', password: 'wrong' } })

// @ts-expect-error a sign-in needs a password
const incomplete: components['schemas']['SignIn'] = { username: 'grace' }
// @ts-expect-error limit is a number
void (() => client.GET('/api/users', { headers, params: { query: { limit: 'ten' } } }))
// @ts-expect-error there is no such field type
const misspelled: components['schemas']['Field'] = { key: 'title', type: 'sting' }
void [incomplete, misspelled]

const same = list.map(({ identifier, title }) => [identifier === createdEntity.identifier, title])
const names = users.map((one) => one.username ?? '').sort()
const changes = [changed.title, stale.response.status, stale.error?.code]
console.log(JSON.stringify({ user: user.username, username, same, names, changes, code: error?.code }))
`

const tsconfig = {
  compilerOptions: {
    ...{ target: 'ESNext', module: 'ESNext', moduleResolution: 'bundler', lib: ['ESNext', 'DOM'], types: [] },
    ...{ strict: true, noUncheckedIndexedAccess: true, noEmit: true, skipLibCheck: true },
  },
  files: ['program.ts', 'process.d.ts'],
}

async function runCommand(command: string[], cwd: string) {
  const child = Bun.spawn(command, { cwd, stderr: 'pipe' })
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { out, err, code }
}

test('a generated client compiles in strict mode, signs in, creates a blueprint, changes an entity by its version and lists them', async () => {
  const at = { at: createTempFolder() }
  await createTenantByCli(at, 'acme')
  await using server = await startAtoll(at)
  const folder = createTempFolder()
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  await Bun.write(join(folder, 'api.json'), await (await fetch(`${server.url}/openapi/json`)).text())
  const generated = await runCommand(
    [join(TOOLS_FOLDER, '.bin/openapi-typescript'), 'api.json', '-o', 'api.d.ts'],
    folder,
  )
  expect([generated.code, generated.err]).toEqual([0, ''])
  await Bun.write(join(folder, 'program.ts'), CLIENT_PROGRAM)
  await Bun.write(join(folder, 'process.d.ts'), 'declare const process: { argv: string[] }\n')
  await Bun.write(join(folder, 'tsconfig.json'), JSON.stringify(tsconfig))
  expect((await runCommand(['node', join(TOOLS_FOLDER, 'typescript/bin/tsc'), '-p', '.'], folder)).out).toBe('')
  const { out, err, code } = await runCommand([process.execPath, 'program.ts', server.url], folder)
  expect([code, err]).toEqual([0, ''])
  expect(JSON.parse(out)).toEqual({
    ...{ user: 'grace', username: 'grace', same: [[true, 'Write more notes']] },
    changes: ['Write more notes', 412, 'VERSION_MISMATCH'],
    ...{ names: ['grace', 'root'], code: 'INVALID_CREDENTIALS' },
  })
})
