// JDK alone: 5 requests per user and minute. ADDR=127.0.0.1:6379 PORT=8080 java Limit.java
import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.*;
import java.io.*;
import java.net.*;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
class Limit {
    static final boolean FAIL_OPEN = true; // while the server is unavailable: true admits, false refuses

    public static void main(String[] args) throws Exception {
        try {
            if (call("COMMAND", "INFO", "GO.THROTTLE")[0] < 0)
                throw new IllegalStateException("the server does not know GO.THROTTLE: load the module gothrottle");
        } catch (IOException error) {
            log(error); // the service starts, and each request tries again
        }
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv("PORT"))), 0);
        server.setExecutor(Executors.newCachedThreadPool()); // else all wait for a slow one
        server.createContext("/", Limit::handle);
        server.start();
    }

    static final AtomicBoolean AWAY = new AtomicBoolean();

    static void log(IOException error) { // once, and not for each request; null: the server decided
        if (AWAY.getAndSet(error != null) != (error != null))
            System.err.println(error != null ? "no decision: " + error : "the server decides again");
    }

    static void handle(HttpExchange exchange) throws IOException {
        int status = 500; // other errors, as of a key of the wrong type
        try {
            URI uri = exchange.getRequestURI();
            String query = "&" + uri.getRawQuery() + "&units=1&";
            String user = URLDecoder.decode(query.split("&user=")[1].split("&")[0], UTF_8);
            long units = Math.max(1, Long.parseLong(query.split("&units=")[1].split("&")[0]));
            long[] reply = takeAndWait(user, units, uri.getPath().equals("/wait") ? 3 : 1);
            log(null);
            status = reply[0] == 1 ? 429 : 200;
            Headers headers = exchange.getResponseHeaders();
            long more = reply[3] > 0 ? reply[3] : Math.min(reply[4], 12);
            headers.set("RateLimit-Policy", String.format("\"user\";q=%d;w=60", reply[1]));
            headers.set("RateLimit", String.format("\"user\";r=%d;t=%d", reply[2], more));
            if (reply[3] > 0) headers.set("Retry-After", "" + reply[3]);
        } catch (ArrayIndexOutOfBoundsException | NumberFormatException error) {
            status = 400; // no user, or units that are no number
        } catch (IOException error) {
            log(error);
            status = FAIL_OPEN ? 200 : 503;
        } catch (Exception error) {
            error.printStackTrace();
        }
        exchange.sendResponseHeaders(status, -1); // no body
    }

    /** Returns limited, limit, remaining, retry_after, reset_after: times are seconds. The limit is 5 per minute. */
    static long[] take(String user, long units) throws IOException {
        return call("GO.THROTTLE", "user:" + user, "4", "5", "60", "" + units);
    }

    static long[] takeAndWait(String user, long units, int tries) throws Exception {
        long[] reply;
        while ((reply = take(user, units))[3] > 0 && --tries > 0) { // -1: admitted, or it never will be
            Thread.sleep((long) (reply[3] * 1000 * (1 + Math.random() / 10))); // the jitter spreads callers
        }
        return reply;
    }

    /** Sends a call once, over a connection of its own. Its reply is an array; a null in the array is -1, and a fault of
     * ours an IllegalStateException. */
    static long[] call(String... words) throws IOException {
        String text = "*" + words.length + "\r\n";
        for (String word : words) text += "$" + word.getBytes(UTF_8).length + "\r\n" + word + "\r\n";
        String[] addr = System.getenv("ADDR").split(":");
        try (Socket socket = new Socket()) {
            socket.connect(new InetSocketAddress(addr[0], Integer.parseInt(addr[1])), 500); // ms
            socket.setSoTimeout(500);
            socket.getOutputStream().write(text.getBytes(UTF_8));
            BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream(), UTF_8));
            String line = in.readLine();
            if (line == null) throw new EOFException("the server closed the connection");
            if (line.matches("-(ERR (?!max number)|WRONG|NOAUTH|NOPERM).*")) throw new IllegalStateException(line);
            if (line.charAt(0) != '*') throw new IOException(line); // the server cannot decide now
            long[] reply = new long[Integer.parseInt(line.substring(1))];
            for (int i = 0; i < reply.length; i++) reply[i] = Long.parseLong(in.readLine().substring(1));
            return reply;
        }
    }
}
