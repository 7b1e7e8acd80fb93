import { Modal, Text } from '@mantine/core'
import { continueAfterSignIn } from '../api/session'
import { SignInForm } from './sign-in-form'

/** A sign-in over the current screen, after the session has ended; what was typed beneath stays. */
export function SignInAgain({ username }: { username: string }) {
  return (
    <Modal opened onClose={() => {}} withCloseButton={false} closeOnEscape={false} title="Your session has ended">
      <Text size="sm" mb="sm">
        Sign in to go on. Nothing you typed is lost.
      </Text>
      <SignInForm username={username} onDone={continueAfterSignIn} />
    </Modal>
  )
}
