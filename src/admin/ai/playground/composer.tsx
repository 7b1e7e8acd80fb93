import { ActionIcon, Textarea } from '@mantine/core'
import { IconArrowUp, IconPlayerStopFilled } from '@tabler/icons-react'
import { type KeyboardEvent, useState } from 'react'
import { keepDraft, readDraft, removeDraft } from '../../api/drafts'
import classes from './playground.module.css'

const DRAFT_KEY = 'playground'

type ComposerProps = { isRunning: boolean; isDisabled: boolean; onSend: (text: string) => void; onStop: () => void }

/** The input for the next question: Enter sends it, Shift-Enter starts a new line. What is typed stays until it is sent. */
export function Composer({ isRunning, isDisabled, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState(() => readDraft<string>(DRAFT_KEY) ?? '')
  const change = (typed: string) => {
    setText(typed)
    if (typed) keepDraft(DRAFT_KEY, typed)
    else removeDraft(DRAFT_KEY)
  }
  const maySend = !isRunning && !isDisabled && text.trim() !== ''
  const send = () => {
    if (!maySend) return
    onSend(text.trim())
    change('')
  }
  const handleKey = (event: KeyboardEvent) => {
    // Enter also ends what is composed by an input method.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    send()
  }
  return (
    <div className={classes.composer}>
      <Textarea
        className={classes.input}
        aria-label="Message"
        placeholder="Ask something. Enter sends it, Shift-Enter starts a new line."
        autosize
        minRows={1}
        maxRows={10}
        autoFocus
        dir="auto"
        value={text}
        onChange={(event) => change(event.currentTarget.value)}
        onKeyDown={handleKey}
      />
      {isRunning ? (
        <ActionIcon size={36} variant="default" aria-label="Stop" onClick={onStop}>
          <IconPlayerStopFilled size={16} />
        </ActionIcon>
      ) : (
        <ActionIcon size={36} aria-label="Send" disabled={!maySend} onClick={send}>
          <IconArrowUp size={18} />
        </ActionIcon>
      )}
    </div>
  )
}
