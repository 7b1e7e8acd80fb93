import { IconWriting } from '@tabler/icons-react'
import { daysBefore, managedBy, pick, readableByGuests, type Template } from './template'

const POSTS = [
  ['hello', 'Hello, world', 'Why we started to write.'],
  ['a-quiet-week', 'A quiet week', 'What happens when nothing breaks.'],
  ['on-names', 'On names', 'The hardest part is what to call it.'],
  ['one-file', 'One file is enough', 'A case for fewer moving parts.'],
  ['slow-mornings', 'Slow mornings', 'How we plan the day without meetings.'],
  ['what-we-read', 'What we read in spring', 'Five books, and one that we did not finish.'],
  ['the-new-office', 'The new office', 'More light, less noise.'],
  ['thank-you', 'Thank you', 'A thousand readers, and what they taught us.'],
] as const
const TAGS = [['news'], ['craft'], ['craft', 'code'], ['code'], ['life']] as const

/** Posts that guests read, drafts that only authors see, and comments. */
export const blog: Template = {
  key: 'blog',
  name: 'Blog',
  description: 'Posts that everybody reads, drafts that only authors see, and comments.',
  icon: IconWriting,
  blueprints: [
    {
      ...{ key: 'authors', name: 'Authors', description: 'Who writes.' },
      fields: [
        { key: 'name', type: 'string', required: true },
        { key: 'about', type: 'text' },
        { key: 'website', type: 'url' },
      ],
      permissions: [readableByGuests, ...managedBy('author')],
    },
    {
      ...{ key: 'posts', name: 'Posts', description: 'What is published. Everybody reads it.' },
      fields: [
        { key: 'title', type: 'string', required: true, max: 200 },
        { key: 'summary', type: 'string', max: 300 },
        { key: 'text', type: 'text', required: true },
        { key: 'author', type: 'relation', target: 'authors', onDelete: 'nullify' },
        { key: 'tags', type: 'string', multi: true },
        { key: 'published', type: 'datetime', required: true },
      ],
      permissions: [readableByGuests, ...managedBy('author')],
    },
    {
      ...{ key: 'drafts', name: 'Drafts', description: 'What is not published yet. Only authors see it.' },
      fields: [
        { key: 'title', type: 'string', required: true, max: 200 },
        { key: 'text', type: 'text' },
        { key: 'author', type: 'relation', target: 'authors', onDelete: 'nullify' },
      ],
      permissions: managedBy('author'),
    },
    {
      ...{ key: 'comments', name: 'Comments', description: 'What readers say.' },
      fields: [
        { key: 'post', type: 'relation', target: 'posts', required: true, onDelete: 'cascade' },
        { key: 'name', type: 'string', required: true, max: 80 },
        { key: 'text', type: 'text', required: true, max: 2000 },
      ],
      permissions: [readableByGuests, ...managedBy('author'), { operation: 'create', roleBased: ['*'] }],
    },
  ],
  makeEntities: (now) => ({
    authors: [
      { identifier: 'ada', name: 'Ada', about: 'Writes about code.', website: 'https://ada.example.com' },
      { identifier: 'grace', name: 'Grace', about: 'Writes about everything else.' },
    ],
    posts: POSTS.map(([identifier, title, summary], n) => ({
      ...{ identifier, title, summary, text: `${summary}\n\nMore of it follows here.` },
      author: pick(['ada', 'grace'], n),
      tags: [...pick(TAGS, n)],
      published: daysBefore(now, (POSTS.length - n) * 11),
    })),
    drafts: [{ identifier: 'next', title: 'What comes next', text: 'Not finished yet.', author: 'ada' }],
    comments: Array.from({ length: 15 }, (_, n) => ({
      identifier: `comment-${1 + n}`,
      post: pick(POSTS, n * 3)[0],
      name: pick(['Ines', 'Olav', 'Mara', 'Luc'], n),
      text: pick(['Well said.', 'I see it differently, but I enjoyed it.', 'Thank you for this.'], n),
    })),
  }),
  charts: [
    { title: 'Posts by month', blueprint: 'posts', kind: 'bar', groupBy: 'published', interval: 'month' },
    { title: 'Comments by post', blueprint: 'comments', kind: 'bar', groupBy: 'post' },
  ],
}
