import { Button, Group, Modal, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import type { FormEvent, ReactNode } from 'react'
import { showNotice } from '../ui/notices'
import { ProblemMessage } from '../ui/problem-message'
import { refreshPayments } from './payment-queries'

type ActionDialogProps = {
  title: string
  /** What happens, in words. */
  text: string
  /** The verb of the button. */
  action: string
  /** The notice once it is done. */
  notice: string
  isReady?: boolean
  send(): Promise<unknown>
  onClose(): void
  /** The inputs; they get the sentence of the server about what they hold. */
  children?(error: string | undefined): ReactNode
}

/** Asks for what an action needs, says what it does, and does it. */
export function ActionDialog({
  title,
  text,
  action,
  notice,
  isReady = true,
  send,
  onClose,
  children,
}: ActionDialogProps) {
  const sending = useMutation({
    mutationFn: send,
    onSuccess: () => {
      showNotice(notice)
      onClose()
    },
    onSettled: refreshPayments,
  })
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (!sending.isPending) sending.mutate()
  }
  return (
    <Modal opened title={title} onClose={onClose}>
      <form onSubmit={submit}>
        <Text size="sm" mb="sm">
          {text}
        </Text>
        {children?.(sending.error?.message)}
        {sending.error && !children && <ProblemMessage error={sending.error} />}
        <Group mt="md" justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Close
          </Button>
          <Button type="submit" disabled={!isReady} loading={sending.isPending}>
            {action}
          </Button>
        </Group>
      </form>
    </Modal>
  )
}
