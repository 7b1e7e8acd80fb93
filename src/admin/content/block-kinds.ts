/** The kinds of blocks with their labels. */
export const BLOCK_KINDS = [
  { value: 'content', label: 'Text' },
  { value: 'html', label: 'HTML' },
]
