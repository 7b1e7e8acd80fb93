import * as contentBlocks from '../../../content/blocks'
import { NewBlock } from '../../../content/shapes'
import { collectErrors, defineDraftKind } from '../draft-kind'

/** Drafts of blocks, the pieces of content that pages consist of. */
export const blocks = defineDraftKind({
  ...{ singular: 'block', plural: 'blocks', shape: NewBlock, area: 'blocks' },
  validate: async (ctx, drafts) =>
    (await Promise.all(drafts.map((draft, n) => collectErrors(n, () => contentBlocks.validateNew(ctx, draft))))).flat(),
  assertMayCreate: contentBlocks.requireEditor,
  create: (ctx, draft) => contentBlocks.create(ctx, draft, {}),
})
