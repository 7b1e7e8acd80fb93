import * as blocks from '../../content/blocks'
import { NewBlock } from '../../content/shapes'
import { defineKind } from './definition-kind'

const RAW = { raw: 'true' }
const DEFAULTS = { description: '', contentType: 'content' as const }

/** A block, with its content as it was written. */
export const block = defineKind({
  folder: 'blocks',
  nameKey: 'name',
  sharesNames: true,
  shape: NewBlock,
  defaults: DEFAULTS,
  list: (ctx, query, answer) => blocks.list(ctx, { ...query, ...RAW }, answer),
  get: (ctx, id, answer) => blocks.get(ctx, id, RAW, answer),
  toStored: ({ _id, name, description, content, contentType }) => ({
    ...{ id: _id, name, definition: { description, content, contentType } },
  }),
  async validate(ctx, input, { before }) {
    const { content, contentType } = { ...DEFAULTS, ...(before?.stored as Partial<typeof input>) }
    if (input.content !== content || input.contentType !== contentType) await blocks.validateNew(ctx, input)
  },
  create: (ctx, input, answer) => blocks.create(ctx, input, RAW, answer),
  change: (ctx, id, input, { answer }) => blocks.update(ctx, id, { ...DEFAULTS, ...input }, RAW, answer),
  remove: (ctx, id, { answer }) => blocks.remove(ctx, id, answer),
})
