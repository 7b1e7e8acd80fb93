import { VisuallyHidden } from '@mantine/core'
import { useEffect, useRef } from 'react'
import type { ChatTurn } from './chat-turns'
import { Message } from './message'
import classes from './playground.module.css'

const NEAR_END_PX = 60

type MessageListProps = { turns: ChatTurn[]; agent?: string; onRetry?: () => void; empty?: string }

/** A conversation. It follows the end of the answer unless the reader scrolled up. */
export function MessageList({ turns, agent, onRetry, empty }: MessageListProps) {
  const scroller = useRef<HTMLElement>(null)
  const isAtEnd = useRef(true)
  const last = turns.at(-1)
  const questionCount = turns.length
  // A new question is always shown.
  useEffect(() => {
    if (questionCount) isAtEnd.current = true
  }, [questionCount])
  useEffect(() => {
    if (isAtEnd.current && turns.length) scroller.current?.scrollTo({ top: scroller.current.scrollHeight })
  }, [turns])
  // The end also stays in view when the room for it changes.
  useEffect(() => {
    const element = scroller.current!
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) element.scrollTo({ top: element.scrollHeight })
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [])
  const watchScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = scroller.current!
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR_END_PX
  }
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section ref={scroller} className={classes.messages} onScroll={watchScroll} aria-label="Conversation" tabIndex={0}>
      <div className={classes.column}>
        {!turns.length && empty && <p className={classes.hint}>{empty}</p>}
        {turns.map((turn) => (
          <Message key={turn.id} turn={turn} agent={agent} onRetry={turn === last ? onRetry : undefined} />
        ))}
      </div>
      <VisuallyHidden role="status">
        {last?.state === 'running' ? 'The answer is coming.' : last?.answer && `Answer: ${last.answer}`}
      </VisuallyHidden>
    </section>
  )
}
