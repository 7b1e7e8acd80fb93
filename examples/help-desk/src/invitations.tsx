import { useMutation } from '@tanstack/react-query'
import { client, hooks } from './atoll'
import { navigate } from './router'
import { Field, Notice, onSubmit } from './ui'

/** The companies that have invited the user, who joins one or declines. */
export function Invitations() {
  const { data: invitations = [] } = hooks.useInvitations()
  const answer = hooks.useAnswerInvitation()
  const activate = hooks.useActivateWorkspace()
  const join = async (workspace: string) => {
    await answer.mutateAsync({ workspace, answer: 'accept' })
    await activate.mutateAsync(workspace)
    navigate('/')
  }
  if (!invitations.length) return null
  return (
    <section aria-labelledby="invitations">
      <h2 id="invitations">You are invited</h2>
      <ul className="people">
        {invitations.map(({ _id, workspace }) => (
          <li key={_id}>
            <span>{workspace.name}</span>
            {/* What fails is shown below the list. */}
            <button type="button" onClick={() => void join(workspace._id).catch(() => {})}>
              Join {workspace.name}
            </button>
            <button
              type="button"
              aria-label={`Decline ${workspace.name}`}
              onClick={() => answer.mutate({ workspace: workspace._id, answer: 'decline' })}
            >
              Decline
            </button>
          </li>
        ))}
      </ul>
      <Notice error={answer.error ?? activate.error} />
    </section>
  )
}

/** Confirms an e-mail address by the code of a mail, which its link has as well. */
export function VerifyEmail() {
  const verify = useMutation({ mutationFn: (code: string) => client.email.verify(code.trim()) })
  const code = new URLSearchParams(location.search).get('token') ?? ''
  if (verify.isSuccess)
    return (
      <p role="status">
        Your address is confirmed. <a href="/">Go on</a>
      </p>
    )
  return (
    <form className="narrow" onSubmit={onSubmit(({ token = '' }) => verify.mutate(token))}>
      <h1>Confirm your e-mail address</h1>
      <Field label="Code in the mail">
        <input name="token" defaultValue={code} autoComplete="one-time-code" required />
      </Field>
      <Notice error={verify.error} />
      <button type="submit" disabled={verify.isPending}>
        Confirm
      </button>
    </form>
  )
}
