// engine: sqlite
import { expect, test } from 'bun:test'
import { callApi, createTestTenant } from '../test-tenant'
import { createAwkwardBlueprints } from './awkward-blueprints'
import { document } from './described-answers'
import { type DescribedApi, listBrokenRules } from './generator-rules'

test('the description keeps every rule that client generators need', () => {
  expect(listBrokenRules(document as unknown as DescribedApi)).toEqual([])
})

test('no part of the description has a number for a name: export its shape, or give the alternative an `x-name`', () => {
  expect(Object.keys(document.components.schemas).filter((name) => /\d$|Part$/.test(name))).toEqual([])
})

test('a broken rule is reported: a list of types, mixed choices, one name for two parameters, a union without a name', () => {
  const list = { name: '$count', in: 'query', schema: { type: ['boolean', 'string'], enum: [true, 'estimate'] } }
  const union = { anyOf: [{ type: 'object', properties: { a: { type: 'string' } } }, { type: 'string' }] }
  const operation = {
    operationId: 'listThings',
    parameters: [{ name: 'count', in: 'query', schema: { type: 'boolean' } }, list],
    requestBody: { content: { 'text/csv': { schema: union } } },
    responses: {},
  }
  const api = {
    paths: { '/things': { get: operation } },
    components: { schemas: { ListThingsResponse: {} }, securitySchemes: { session: { name: 'atoll_{tenant}' } } },
  }
  expect(listBrokenRules(api)).toEqual([
    'session: no name of a header or cookie: atoll_{tenant}',
    'ListThingsResponse: generators give this name to a part',
    'GET /things: two parameters named $count',
    'GET /things ?$count: a list of types: boolean,string',
    'GET /things ?$count: an enum of several types',
    'GET /things: a body of text/csv',
    'GET /things body: a union without a name',
    'GET /things body: alternative 0 has no name',
    'GET /things body|0: an object without a name',
  ])
})

test('the description of a tenant keeps these rules whatever its blueprints and fields are called', async () => {
  const { as, id, origin, tokens } = await createTestTenant()
  await createAwkwardBlueprints(as('admin'))
  const { body } = await callApi('GET', `${origin}/openapi/json?tenant=${id}`, {
    headers: { 'x-api-key': tokens.admin },
  })
  expect(Object.keys(body.components.schemas)).toContainValues(['Deals', 'DealsPlace', 'DealsPlaceGeo', 'DealsStage'])
  expect(listBrokenRules(body)).toEqual([])
})
