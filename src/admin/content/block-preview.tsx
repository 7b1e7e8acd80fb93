import { Text } from '@mantine/core'
import type { Block } from '../api/schema'
import { readCspNonce } from '../ui/csp-nonce'
import classes from './content.module.css'

const PREVIEW_STYLE =
  'body { margin: 12px; font: 14px/1.5 system-ui, sans-serif; color: #111; background: #fff } pre { white-space: pre-wrap }'

/** The policy of the page also holds for frames in it, so styles need its nonce. */
function toDocument({ contentType, content }: Block): string {
  const body = contentType === 'html' ? content : `<pre>${escapeHtml(content)}</pre>`
  return `<!doctype html><html lang="en"><style nonce="${readCspNonce()}">${PREVIEW_STYLE}</style>${body}`
}
const escapeHtml = (text: string) => text.replace(/[&<>]/g, (letter) => `&#${letter.charCodeAt(0)};`)

/** A block as pages get it, in a frame that runs no scripts. */
export function BlockPreview({ written, displayed }: { written: Block; displayed: Block }) {
  const isHtml = displayed.contentType === 'html'
  return (
    <section className={classes.preview} aria-label="Preview">
      <Text size="xs" c="dimmed">
        As pages get it, since it was saved.
        {isHtml && written.content !== displayed.content && ' What could run or cover the page is left out.'}
      </Text>
      <iframe className={classes.frame} title="Preview of the block" sandbox="" srcDoc={toDocument(displayed)} />
    </section>
  )
}
