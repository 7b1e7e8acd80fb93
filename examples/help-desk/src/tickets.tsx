import { useState } from 'react'
import { client, hooks } from './atoll'
import { Link, navigate } from './router'
import { Field, formatTime, Notice, onSubmit } from './ui'

export const PRIORITIES = ['low', 'normal', 'high'] as const
export const STATUSES = ['open', 'waiting', 'solved'] as const
type Status = (typeof STATUSES)[number]

export function Tickets() {
  const [status, setStatus] = useState<Status>('open')
  const { data: tickets = [], isPending, error } = hooks.useLiveList('tickets', { status, $sort: '-created' })
  return (
    <>
      <div className="row">
        <h1>Tickets</h1>
        <select aria-label="Status" value={status} onChange={({ target }) => setStatus(target.value as Status)}>
          {STATUSES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
        <Link href="/new" className="button">
          New ticket
        </Link>
      </div>
      <Notice error={error} isLoading={isPending} />
      {!isPending && !tickets.length && <p>There are no {status} tickets.</p>}
      <ul className="tickets">
        {tickets.map((ticket) => (
          <li key={ticket._id}>
            <Link href={`/tickets/${ticket._id}`}>{ticket.subject}</Link>
            <span className={`priority ${ticket.priority}`}>{ticket.priority}</span>
            <time dateTime={ticket.created}>{formatTime(ticket.created)}</time>
          </li>
        ))}
      </ul>
    </>
  )
}

type Draft = { subject: string; text: string; priority: (typeof PRIORITIES)[number]; files: File[] }

export function NewTicket() {
  const create = hooks.useCreate('tickets')
  const upload = hooks.useUpload()
  const save = async ({ files, ...ticket }: Draft) => {
    const attachments: string[] = []
    for (const file of files) attachments.push((await upload.mutateAsync(file))._id)
    const { _id } = await create.mutateAsync({ ...ticket, attachments })
    navigate(`/tickets/${_id}`)
  }
  const submit = onSubmit(({ subject = '', text = '', priority }, form) => {
    const files = (new FormData(form).getAll('files') as File[]).filter(({ size }) => size > 0)
    // What fails is shown below the form.
    void save({ subject, text, priority: priority as Draft['priority'], files }).catch(() => {})
  })
  return (
    <form className="narrow" onSubmit={submit}>
      <h1>New ticket</h1>
      <Field label="Subject">
        <input name="subject" maxLength={200} required />
      </Field>
      <Field label="What happened?">
        <textarea name="text" rows={6} required />
      </Field>
      <Field label="Priority">
        <select name="priority" defaultValue="normal">
          {PRIORITIES.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </Field>
      <Field label="Attachments">
        <input name="files" type="file" accept="image/*,application/pdf,text/plain" multiple />
      </Field>
      {upload.isPending && <progress aria-label="Upload" value={upload.progress} />}
      <Notice error={upload.error ?? create.error} />
      <button type="submit" disabled={upload.isPending || create.isPending}>
        Send
      </button>
    </form>
  )
}

/** Attached files; pictures are shown as thumbnails. */
export const Attachments = ({ urls }: { urls: string[] }) => (
  <ul className="attachments">
    {urls.map((url) => {
      const name = decodeURIComponent(url.split('/').at(-1) ?? '')
      const isPicture = /\.(avif|gif|jpe?g|png|webp)$/i.test(name)
      return (
        <li key={url}>
          <a href={client.files.url({ url })} target="_blank" rel="noreferrer">
            {isPicture ? <img src={client.files.url({ url }, { thumb: '400x400', fit: 'inside' })} alt={name} /> : name}
          </a>
        </li>
      )
    })}
  </ul>
)
