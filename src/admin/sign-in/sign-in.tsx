import { Title } from '@mantine/core'
import { startSession } from '../api/queries'
import { Brand } from '../branding/brand'
import { useDocumentTitle } from '../branding/tenant-brand'
import { FullPage } from '../ui/full-page'
import { SignInForm } from './sign-in-form'

/** The screen of somebody who is not signed in. */
export function SignIn() {
  useDocumentTitle('Sign in')
  return (
    <FullPage>
      <Brand isLarge />
      <Title order={1} mb="md">
        Sign in
      </Title>
      <SignInForm onDone={startSession} />
    </FullPage>
  )
}
