import { beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { handleRequest } from '../../../src/gateway'
import { createTempFolder } from '../../fakes/cli'
import { createTestTenant } from '../../test-tenant'

setDefaultTimeout(120_000)

const SUITE = join(process.cwd(), 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
const isInstalled = existsSync(SUITE)
if (!isInstalled) console.warn('Skipped: @modelcontextprotocol/conformance is not installed. Run `npm ci`.')

const CONTENT = 'the results of our tools are texts'
const PROMPTS = 'we offer no prompts'
const RESOURCES = 'our resources are the blueprints, under addresses of their own'
const REQUESTS = 'the server keeps no state between messages, so it asks its clients nothing'
const NOTICES = 'every answer is one JSON object, without notices before it'
/** The scenarios of features that Atoll does not offer, and why it does not. */
const NOT_OFFERED: Record<string, string> = {
  'logging-set-level': NOTICES,
  'completion-complete': 'no arguments are completed',
  'tools-call-image': CONTENT,
  'tools-call-audio': CONTENT,
  'tools-call-embedded-resource': CONTENT,
  'tools-call-mixed-content': CONTENT,
  'tools-call-with-logging': NOTICES,
  'tools-call-with-progress': NOTICES,
  'tools-call-sampling': REQUESTS,
  'tools-call-elicitation': REQUESTS,
  'elicitation-sep1034-defaults': REQUESTS,
  'elicitation-sep1330-enums': REQUESTS,
  'resources-read-text': RESOURCES,
  'resources-read-binary': RESOURCES,
  'resources-templates-read': RESOURCES,
  'resources-subscribe': RESOURCES,
  'resources-unsubscribe': RESOURCES,
  'prompts-list': PROMPTS,
  'prompts-get-simple': PROMPTS,
  'prompts-get-with-args': PROMPTS,
  'prompts-get-embedded-resource': PROMPTS,
  'prompts-get-with-image': PROMPTS,
}

/** The tools that the suite calls, as integrations that run lambdas. */
const TOOLS: Record<string, { code: string; parameters?: object }> = {
  test_simple_text: { code: "() => 'This is a simple text response for testing.'" },
  test_error_handling: { code: "() => { throw new Error('This tool intentionally returns an error for testing') }" },
  json_schema_2020_12_tool: {
    code: "() => 'stored'",
    parameters: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: { address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } } },
      properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
      additionalProperties: false,
    },
  },
}

/** Runs a command of the suite, which has to be run by Bun. */
async function runSuite(...args: string[]) {
  const child = Bun.spawn([process.execPath, '--bun', SUITE, ...args], { stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return out + err
}

type Check = { id: string; status: string; errorMessage?: string }
let scenarios: string[] = []
const checks: Record<string, Check[]> = {}

beforeAll(async () => {
  if (!isInstalled) return
  const at = await createTestTenant()
  const admin = at.as('admin')
  for (const [name, { code, parameters = { type: 'object', properties: {} } }] of Object.entries(TOOLS)) {
    const { _id: lambdaId } = (await admin.post('/lambdas', { name, code: `export default ${code}` })).body
    const trigger = { kind: 'tool', name, description: `The tool ${name}.`, parameters }
    expect((await admin.post('/integrations', { trigger, target: { kind: 'lambda', lambdaId } })).status).toBe(201)
  }
  // The suite sends no key, and asks a name of the loopback where the tenant has another.
  const server = Bun.serve({
    ...{ port: 0, hostname: '127.0.0.1' },
    fetch: (request) => {
      const url = new URL(request.url)
      const headers = new Headers(request.headers)
      headers.set('x-api-key', at.tokens.admin)
      if (url.hostname === 'localhost') headers.set('host', `${at.id}.test`)
      return handleRequest(new Request(request, { headers }))
    },
  })
  const folder = createTempFolder()
  const [list] = await Promise.all([
    runSuite('list'),
    runSuite('server', '--url', `http://localhost:${server.port}/api/mcp`, '--suite', 'all', '-o', folder),
  ])
  await server.stop(true)
  const [ofServers = ''] = list.split('Client scenarios')
  scenarios = [...ofServers.matchAll(/^ +- (\S+) \[/gm)].map(([, name = '']) => name)
  for (const name of readdirSync(folder)) {
    const scenario = scenarios.findLast((one) => name.includes(one))
    if (scenario) checks[scenario] = JSON.parse(readFileSync(join(folder, name, 'checks.json'), 'utf8'))
  }
})

test.skipIf(!isInstalled)(
  'every scenario of the MCP conformance suite passes, except those of features that Atoll does not offer',
  () => {
    const failed = scenarios.filter((name) => !checks[name] || checks[name].some(({ status }) => status === 'FAILURE'))
    expect(failed.toSorted()).toEqual(Object.keys(NOT_OFFERED).toSorted())
  },
)
