import { Button, Group, Modal, Text, TextInput } from '@mantine/core'
import { type FormEvent, useState } from 'react'
import { observable, useObservable } from '../api/observable'

type Question = {
  /** What happens, such as `Delete the blueprint "Contacts"?` */
  title: string
  /** What goes with it and cannot be brought back. */
  text?: string
  /** The verb of the button, such as "Delete 3 contacts". */
  action: string
  /** What has to be typed before, where more than one row is at stake. */
  typedName?: string
}

type OpenQuestion = Question & { answer(isConfirmed: boolean): void }

const openQuestion = observable<OpenQuestion | undefined>(undefined)

/** Asks before something that cannot be undone. Returns whether the user confirmed it. */
export function confirmAction(question: Question): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const answer = (isConfirmed: boolean) => {
    openQuestion.set(undefined)
    resolve(isConfirmed)
  }
  // A question that is open already would never be answered.
  openQuestion.get()?.answer(false)
  openQuestion.set({ ...question, answer })
  return promise
}

/** The dialog of `confirmAction`. */
export function Confirmation() {
  const question = useObservable(openQuestion)
  return question ? <ConfirmationDialog key={question.title} {...question} /> : null
}

function ConfirmationDialog({ title, text, action, typedName, answer }: OpenQuestion) {
  const [typed, setTyped] = useState('')
  const submit = (event: FormEvent) => {
    event.preventDefault()
    answer(true)
  }
  return (
    <Modal opened title={title} onClose={() => answer(false)}>
      <form onSubmit={submit}>
        {text && (
          <Text size="sm" mb="sm">
            {text}
          </Text>
        )}
        {typedName && (
          <TextInput
            label={`Type ${typedName} to confirm`}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            data-autofocus
          />
        )}
        <Group mt="md" justify="flex-end">
          <Button variant="default" onClick={() => answer(false)} data-autofocus={typedName ? undefined : true}>
            Cancel
          </Button>
          <Button type="submit" color="red.9" disabled={!!typedName && typed !== typedName}>
            {action}
          </Button>
        </Group>
      </form>
    </Modal>
  )
}
