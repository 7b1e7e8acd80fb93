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
  list: (ctx, query) => blocks.list(ctx, { ...query, ...RAW }),
  get: (ctx, id) => blocks.get(ctx, id, RAW),
  toStored: ({ _id, name, description, content, contentType }) => ({
    ...{ id: _id, name, definition: { description, content, contentType } },
  }),
  async validate(ctx, input, { before }) {
    const { content, contentType } = { ...DEFAULTS, ...(before?.stored as Partial<typeof input>) }
    if (input.content !== content || input.contentType !== contentType) await blocks.validateNew(ctx, input)
  },
  create: (ctx, input) => blocks.create(ctx, input, RAW),
  change: (ctx, id, input, { ifMatch }) => blocks.update(ctx, id, { ...DEFAULTS, ...input }, { ...RAW, ifMatch }),
  remove: (ctx, id, { ifMatch }) => blocks.remove(ctx, id, { ifMatch }),
})
