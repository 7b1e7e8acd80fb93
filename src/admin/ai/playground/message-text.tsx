import { Anchor } from '@mantine/core'
import { isValidElement, memo, type ReactNode } from 'react'
import Markdown, { type Components } from 'react-markdown'
import { CodeBlock } from '../../ui/code-block'
import classes from './message.module.css'

const toText = (node: ReactNode): string =>
  Array.isArray(node)
    ? node.map(toText).join('')
    : isValidElement<{ children?: ReactNode }>(node)
      ? toText(node.props.children)
      : String(node ?? '')

function readLanguage(node: ReactNode): string {
  const className = isValidElement<{ className?: string }>(node) ? node.props.className : undefined
  return /language-([\w-]+)/.exec(className ?? '')?.[1] ?? 'code'
}

const MessageLink = ({ href, children }: { href?: string; children?: ReactNode }) => (
  <Anchor href={href} target="_blank" rel="noreferrer" inherit>
    {children}
  </Anchor>
)

const components: Components = {
  pre: ({ children }) => <CodeBlock label={readLanguage(children)} code={toText(children).replace(/\n$/, '')} />,
  a: MessageLink,
  // The page loads nothing from elsewhere, so an image is a link.
  img: ({ src, alt }) => <MessageLink href={typeof src === 'string' ? src : undefined}>{alt || 'Image'}</MessageLink>,
  // Headings of an answer do not belong to those of the page.
  ...Object.fromEntries(
    ['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map((name) => [
      name,
      ({ children }: { children?: ReactNode }) => <p className={classes.heading}>{children}</p>,
    ]),
  ),
}

/** The text of a model as Markdown. HTML in it is shown as text. */
export const MessageText = memo(({ text }: { text: string }) => (
  <div className={classes.text} dir="auto">
    <Markdown components={components}>{text}</Markdown>
  </div>
))
