import { Button, Group, Modal, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { CodeBlock } from '../../ui/code-block'

type SecretDialogProps = { title: string; secret: string; children?: ReactNode; onClose: () => void }

/** A secret that nobody can read again, in a dialog that only its button closes. */
export const SecretDialog = ({ title, secret, children, onClose }: SecretDialogProps) => (
  <Modal
    opened
    title={title}
    onClose={onClose}
    closeOnClickOutside={false}
    closeOnEscape={false}
    withCloseButton={false}
  >
    <Text size="sm" mb="sm">
      Keep it in a safe place: it is shown only now. {children}
    </Text>
    <CodeBlock label={title} code={secret} />
    <Group justify="flex-end">
      <Button onClick={onClose}>I have kept it</Button>
    </Group>
  </Modal>
)
