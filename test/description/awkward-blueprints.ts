import { expect } from 'bun:test'
import type { TestResponse } from '../test-tenant'

/** A JSON schema as other programs write it, with titles, lists of types and unions. */
const address = {
  title: 'Address',
  type: 'object',
  required: ['city'],
  properties: {
    city: { type: 'string', title: 'City' },
    zip: { type: ['string', 'number'], minLength: 2 },
    kind: { enum: ['home', 1, null] },
    geo: { title: 'Geo', type: 'object', properties: { lat: { type: 'number' }, lon: { type: ['number', 'null'] } } },
    other: {
      oneOf: [
        { title: 'A', type: 'object', properties: { kind: { const: 'a' } } },
        {
          title: 'A',
          type: 'object',
          properties: {
            kind: { const: 'b' },
            list: { type: 'array', items: { type: 'object', properties: { x: { type: 'integer' } } } },
          },
        },
      ],
    },
  },
}

const STAGES = ['open', 'Open', 'won', '', '1', 'ä', '<nil>', 'a b', 'a-b']

/** Fields whose names, choices and schemas are hard on generators. */
const fields = [
  ...['first_name', 'firstName', 'firstname', 'class', 'page', 'sort', 'q', 'after', 'self', 'client'].map((key) => ({
    key,
    type: 'string',
  })),
  { key: 'count', type: 'integer' },
  { key: 'limit', type: 'integer' },
  { key: 'stage', type: 'string', title: 'Stage', enum: STAGES, default: 'open' },
  { key: 'rate', type: 'number', enum: [0.5, 1, 2], default: 1 },
  { key: 'size', type: 'integer', enum: [1, 2] },
  { key: 'price', type: 'decimal', enum: ['1.50', '2'] },
  { key: 'tags', type: 'string', multi: true, enum: ['a', 'b'] },
  { key: 'day', type: 'date', default: '2030-01-01' },
  { key: 'at', type: 'datetime' },
  { key: 'place', type: 'object', title: 'Address', schema: address },
  { key: 'places', type: 'object', multi: true, schema: address },
  { key: 'free', type: 'object' },
  { key: 'cover', type: 'file' },
  { key: 'papers', type: 'file', multi: true },
  { key: 'mail', type: 'email', required: true },
  { key: 'ok', type: 'boolean', default: true, required: true },
]

/** Keys whose types have the name of another schema or of another blueprint's part. */
const KEYS = ['deals', 'deals-stage', 'user', 'message', 'plan_change', 'list', 'any', 'entity', 'list-entities', 'int']

/** Creates blueprints whose names and fields collide wherever a generator could make one name of two. */
export async function createAwkwardBlueprints(admin: {
  post: (path: string, body: object) => Promise<Pick<TestResponse, 'status' | 'body'>>
}) {
  for (const key of KEYS) {
    const { status, body } = await admin.post('/blueprints', { key, name: 'Deal', fields, history: true })
    expect([status, body.key ?? body]).toEqual([201, key])
  }
}
