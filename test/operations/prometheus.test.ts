import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { listen } from '../../src/gateway'
import { setServer } from '../../src/tenancy/client-connection'
import { prometheusPath, startPrometheus } from '../fakes/prometheus'
import { callApi, createTestTenant } from '../test-tenant'
import { waitUntil } from '../wait-until'

setDefaultTimeout(60_000)

const folder = resolve(import.meta.dir, '../../docs/operations')
const read = (path: string) => readFileSync(resolve(folder, path), 'utf8')
const scrapeConfig = read('prometheus/prometheus.yml')
const rules = read('prometheus/alerts.yml')

type Rule = { name: string; health: string; lastError?: string }
type Panel = { title: string; type: string; targets?: { expr: string; legendFormat: string }[] }
const dashboard: { panels: Panel[]; templating: { list: { name: string; query: unknown }[] } } = JSON.parse(
  read('grafana/atoll.json'),
)
const panels = dashboard.panels.filter(({ type }) => type !== 'row')
const panelExpressions = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({ title, expr, legendFormat })),
)
const ruleExpressions = [...rules.matchAll(/^ {8}expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)/gm)].map(([, block, line]) =>
  (block ?? line)!.replace(/\s+/g, ' '),
)
const namesIn = (expression: string) =>
  [...expression.matchAll(/\b(?:atoll|process)_\w+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ''))

/** Fills in the variables as Grafana does. */
const fillIn = (expression: string) =>
  expression.replaceAll('$instance', '.*').replaceAll('$__rate_interval', '1m').replaceAll('$__range', '1h')

// Another test may have left its server.
beforeAll(() => setServer(undefined))

describe('the files for Prometheus and Grafana', () => {
  test('the files name only metrics that exist, and the dashboard and the document show every metric', async () => {
    const { body } = await callApi('GET', 'http://localhost/metrics')
    const existing = new Set([...String(body).matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name!))
    expect(ruleExpressions.length).toBe([...rules.matchAll(/- alert:/g)].length)
    const shown = new Set(panelExpressions.flatMap(({ expr }) => namesIn(expr)))
    for (const name of [...shown, ...ruleExpressions.flatMap(namesIn)]) expect(existing).toContain(name)
    expect([...existing].filter((name) => !shown.has(name))).toEqual([])
    const documented = read('metrics-and-logs.md')
    for (const name of existing) if (name.startsWith('atoll_')) expect(documented).toContain(`\`${name}\``)
  })

  test('every panel has a title of its own and asks for the chosen servers', () => {
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length)
    for (const { title, expr } of panelExpressions) expect(expr, title).toContain('{instance=~"$instance"')
    expect(dashboard.templating.list.map(({ name }) => name)).toEqual(['datasource', 'instance'])
  })
})

describe.skipIf(!prometheusPath)('a Prometheus that reads a running server', () => {
  let server: ReturnType<typeof listen>
  let prometheus: Awaited<ReturnType<typeof startPrometheus>>
  beforeAll(async () => {
    server = listen('127.0.0.1', 0)
    const t = await createTestTenant()
    await t
      .as('admin')
      .post('/blueprints', { key: 'things', name: 'Things', fields: [{ key: 'name', type: 'string' }] })
    const configuration = scrapeConfig
      .replace('127.0.0.1:3000', `127.0.0.1:${server.port}`)
      .replace('alerts.yml', resolve(folder, 'prometheus/alerts.yml'))
      .replaceAll(/interval: 15s/g, 'interval: 1s')
    prometheus = await startPrometheus(configuration)
    const hasRates = async () => {
      await t.as('admin').post('/blueprints/things/entities', { name: 'a' })
      await t.as('admin').get('/blueprints/none')
      const { data } = await prometheus.ask('query', { query: 'rate(atoll_http_requests_total{status="404"}[1m]) > 0' })
      return data.result.length
    }
    await waitUntil(hasRates, Boolean, 30_000)
  })
  afterAll(async () => {
    await prometheus[Symbol.asyncDispose]()
    await server.stop(true)
    setServer(undefined)
  })

  test('Prometheus reads the server by the documented configuration without a warning', async () => {
    const { data } = await prometheus.ask('targets')
    expect(data.activeTargets).toMatchObject([{ health: 'up', lastError: '', labels: { job: 'atoll' } }])
    const samples = await prometheus.ask('query', { query: 'scrape_samples_scraped{job="atoll"}' })
    expect(Number(samples.data.result[0].value[1])).toBeGreaterThan(200)
  })

  test('every expression of the dashboard is answered without an error or warning, and most have values', async () => {
    const empty: string[] = []
    for (const { title, expr } of panelExpressions) {
      const answer = await prometheus.ask('query', { query: fillIn(expr) })
      expect([answer.status, answer.error, answer.warnings], `${title}: ${expr}`).toEqual([
        'success',
        undefined,
        undefined,
      ])
      if (!answer.data.result.length) empty.push(title)
    }
    // There was no job, no top tenant within a minute, and maybe no PostgreSQL and no 5xx.
    const mayBeEmpty = [
      'Jobs by kind',
      'Time in jobs',
      'Tenants with the most requests',
      'Connections to PostgreSQL',
      'Share of failed requests',
    ]
    expect(empty.filter((title) => !mayBeEmpty.includes(title))).toEqual([])
  })

  test('every alert rule is loaded and evaluated without an error', async () => {
    const evaluated = () => prometheus.ask('rules').then(({ data }) => data.groups[0]?.rules ?? [])
    const isEvaluated = (list: Rule[]) => list.length > 0 && list.every(({ health }) => health !== 'unknown')
    const loaded: Rule[] = await waitUntil(evaluated, isEvaluated)
    expect(loaded.map(({ name }) => name)).toHaveLength(ruleExpressions.length)
    for (const { name, health, lastError } of loaded) expect([name, health, lastError]).toEqual([name, 'ok', undefined])
  })
})

describe.skipIf(!prometheusPath || !Bun.which('promtool'))('promtool', () => {
  const run = (...args: string[]) => {
    const { exitCode, stdout, stderr } = Bun.spawnSync(['promtool', ...args])
    return [exitCode, exitCode ? `${stdout}${stderr}` : '']
  }

  test('promtool accepts the rules and the configuration', () => {
    expect(run('check', 'rules', resolve(folder, 'prometheus/alerts.yml'))).toEqual([0, ''])
    expect(run('check', 'config', resolve(folder, 'prometheus/prometheus.yml'))).toEqual([0, ''])
  })

  test('the alerts fire for the series that they are about, and for no others', () => {
    expect(run('test', 'rules', resolve(import.meta.dir, 'alerts.test.yml'))).toEqual([0, ''])
  })
})
