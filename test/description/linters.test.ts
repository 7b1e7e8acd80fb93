// engine: sqlite
import { expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { app } from '../../src/app'
import { buildOpenApi } from '../../src/operations/openapi/document'
import { createTempFolder } from '../fakes/cli'

setDefaultTimeout(180_000)

const file = join(createTempFolder(), 'openapi.json')
const OFFLINE_ENV = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }

/** Runs a linter of `node_modules/.bin` and returns its output and exit code. */
async function lint(command: string, ...options: string[]) {
  const program = [join(process.cwd(), 'node_modules/.bin', command), 'lint', ...options, file]
  const run = Bun.spawn(program, { cwd: import.meta.dir, env: { ...process.env, ...OFFLINE_ENV }, stderr: 'pipe' })
  const [out, , code] = await Promise.all([run.stdout.text(), run.stderr.text(), run.exited])
  return { out, code }
}

test('Redocly finds no error and no warning in the OpenAPI document', async () => {
  await Bun.write(file, JSON.stringify(buildOpenApi(app.routes)))
  const { out, code } = await lint('redocly', '--config', 'redocly.yaml', '--format', 'json')
  const { problems } = JSON.parse(out) as { problems: { ruleId: string; message: string }[] }
  expect([code, problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)]).toEqual([0, []])
})

test('Spectral finds no error, no warning and no hint in the OpenAPI document', async () => {
  await Bun.write(file, JSON.stringify(buildOpenApi(app.routes)))
  const { out, code } = await lint('spectral', '-r', 'spectral.yaml', '-F', 'hint', '-q', '-f', 'json')
  const problems = JSON.parse(out) as { code: string; message: string; path: string[] }[]
  expect([code, problems.map((one) => `${one.code}: ${one.message} (${one.path.join('/')})`)]).toEqual([0, []])
})

test('Redocly reports an operation without a summary in a broken OpenAPI document', async () => {
  const broken = buildOpenApi(app.routes)
  broken.paths['/api/signin'] = { post: { responses: {}, requestBody: { content: {} } } }
  await Bun.write(file, JSON.stringify(broken))
  const { out, code } = await lint('redocly', '--config', 'redocly.yaml', '--format', 'json')
  expect(code).toBe(1)
  expect(out).toContain('operation-summary')
})
