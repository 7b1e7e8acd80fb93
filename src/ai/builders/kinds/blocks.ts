import * as contentBlocks from '../../../content/blocks'
import { NewBlock } from '../../../content/shapes'
import { collectErrors, type DraftKind } from '../draft-kind'

/** Drafts of blocks, the pieces of content that pages consist of. */
export const blocks: DraftKind<typeof NewBlock> = {
  ...{ singular: 'block', shape: NewBlock, area: 'blocks' },
  validate: async (ctx, drafts) =>
    (await Promise.all(drafts.map((draft, n) => collectErrors(n, () => contentBlocks.validateNew(ctx, draft))))).flat(),
  assertMayCreate: contentBlocks.requireEditor,
  create: (ctx, draft, answer) => contentBlocks.create(ctx, draft, {}, answer),
}
