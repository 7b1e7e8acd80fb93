// engine: sqlite
import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Glob, YAML } from 'bun'
import { version } from '../../package.json'
import { Settings } from '../../src/config'
import { createTempFolder } from '../fakes/cli'
import { waitUntil } from '../wait-until'

const root = resolve(import.meta.dir, '../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')

const DEPLOY = 'docs/operations/deploy'
const CHART = `${DEPLOY}/chart`
const templates = [...new Glob(`${CHART}/templates/*`).scanSync(root)].sort()
const composeFiles = ['compose.yaml', `${DEPLOY}/compose.postgres.yaml`]
const files = ['Dockerfile', ...composeFiles, `${DEPLOY}/atoll.service`, `${CHART}/values.yaml`, ...templates]

// biome-ignore lint/suspicious/noExplicitAny: the files have no types, and expectations say what is in them
const parse = (path: string): any => YAML.parse(read(path))

test.each(files)('%s names only settings that exist', (path) => {
  const prose = read(path).replace(/# Kubernetes would set .*/, '')
  for (const [name] of prose.matchAll(/\bATOLL_\w+/g)) expect(Object.keys(Settings.properties), name).toContain(name)
})

test.each(composeFiles)('%s runs Atoll without privileges on a read-only system', (path) => {
  const { services } = parse(path)
  const servers = Object.values<Record<string, unknown>>(services).filter(({ image }) => image === 'atoll')
  expect(servers.length).toBeGreaterThan(0)
  for (const server of servers)
    expect(server).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] })
})

test('the image is made for a user that is not root, and listens on the port that it exposes', () => {
  const dockerfile = read('Dockerfile')
  const [, user] = /^USER (\d+):\d+$/m.exec(dockerfile)!
  expect(Number(user)).toBeGreaterThan(0)
  expect(dockerfile).toContain(`EXPOSE ${Settings.properties.ATOLL_PORT.default}\n`)
  expect(read(`${CHART}/templates/_names.tpl`)).toContain(`runAsUser: ${user}\n`)
})

const caddyPath = Bun.which('caddy')
test.skipIf(!caddyPath)(
  'the proxy of compose.postgres.yaml passes on what a reverse proxy before it says',
  async () => {
    using upstream = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: ({ headers }) => Response.json([...headers]) })
    using reserved = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response() })
    const url = `http://127.0.0.1:${reserved.port}`
    reserved.stop(true)
    const { content } = parse(`${DEPLOY}/compose.postgres.yaml`).configs.caddyfile
    const [folder, site] = [createTempFolder(), content.replace(':3000 {', `${url} {`)]
    const config = join(folder, 'Caddyfile')
    writeFileSync(config, `{\n  admin off\n}\n${site.replace('atoll:3000', `127.0.0.1:${upstream.port}`)}`)
    const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
    const command = [caddyPath!, 'run', '--adapter', 'caddyfile', '--config', config]
    const caddy = Bun.spawn(command, { env, stdout: 'ignore', stderr: 'ignore' })
    try {
      const headers = {
        'x-forwarded-for': '198.51.100.1, 203.0.113.9',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'acme.example.com',
      }
      const ask = () => fetch(url, { headers }).catch(() => undefined)
      const response = await waitUntil(ask, (answer) => answer?.status === 200)
      expect(Object.fromEntries((await response.json()) as [string, string][])).toMatchObject(headers)
    } finally {
      caddy.kill()
      await caddy.exited
    }
  },
)

describe('the Helm chart', () => {
  test('the chart has the version of package.json', () => {
    expect(parse(`${CHART}/Chart.yaml`)).toMatchObject({ version, appVersion: version })
  })

  test('values.yaml declares every value that a template reads', () => {
    const values = parse(`${CHART}/values.yaml`)
    const names = templates.flatMap((path) => [...read(path).matchAll(/\.Values\.([\w.]+)/g)].map(([, name]) => name!))
    expect(names.length).toBeGreaterThan(20)
    for (const name of names) expect(values, name).toHaveProperty(name.split('.'))
  })

  test('the deployment asks /ready for readiness, and gives a server that is stopped more time than it drains', () => {
    const deployment = read(`${CHART}/templates/deployment.yaml`)
    expect(deployment).toMatch(/readinessProbe:\n +httpGet: \{ path: \/ready, port: http \}/)
    expect(deployment).toContain('terminationGracePeriodSeconds: {{ add .Values.drainSeconds 20 }}')
  })

  test.each(['deployment', 'prepare'])('the template %s gets no settings from services of the namespace', (name) => {
    expect(read(`${CHART}/templates/${name}.yaml`)).toContain('enableServiceLinks: false')
  })
})
