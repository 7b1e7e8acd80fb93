import { expect, test } from 'bun:test'
import { callApi } from '../test-tenant'

const ORIGIN = 'http://nobody.test'

test('GET / answers browsers an HTML page that links to the documentation', async () => {
  const { status, headers, body } = await callApi('GET', `${ORIGIN}/`, { headers: { accept: 'text/html,*/*' } })
  expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  expect(body).toContain('href="/openapi"')
  expect(headers.get('content-security-policy')).toContain("default-src 'none'")
})

test('GET / answers programs a JSON index of the API whose links work', async () => {
  const { status, body } = await callApi('GET', `${ORIGIN}/`)
  expect([status, body]).toEqual([
    200,
    {
      name: 'Atoll',
      api: '/api',
      documentation: '/openapi',
      description: '/openapi/json',
      health: '/health',
      readiness: '/ready',
    },
  ])
  for (const path of [body.documentation, body.description, body.health, body.readiness])
    expect((await callApi('GET', `${ORIGIN}${path}`)).status, path).toBe(200)
})

test('GET /favicon.ico answers 204', async () => {
  expect((await callApi('GET', `${ORIGIN}/favicon.ico`)).status).toBe(204)
})
