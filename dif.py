import sys
def rd(f):
    d={}
    for l in open('/tmp/cg/'+f).read().split('\n')[1:]:
        if l.strip(): v,k=l.strip().split(' ',1); d[k]=float(v)
    return d
a=rd(sys.argv[1]);b=rd(sys.argv[2])
ours=lambda d: sum(v for k,v in d.items() if 'gothrottle' in k or k.split()[0] in ('run','put_args','put_field','read_fields','append','reply_integers','goCall') or k.startswith('shim') or k.startswith('runtime.'))
print('ours',ours(a),ours(b))
for k in sorted(set(a)|set(b),key=lambda k:-abs(a.get(k,0)-b.get(k,0))):
    if abs(a.get(k,0)-b.get(k,0))>2: print('%7.1f %7.1f %+7.1f %s'%(a.get(k,0),b.get(k,0),b.get(k,0)-a.get(k,0),k))
